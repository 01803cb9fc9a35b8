// Tests of baseline files: what is kept when a baseline is written again, and the errors for mistakes in a
// file that was edited by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/stats/baseline.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using testing::HasSubstr;

const std::string kMachine = "Some CPU, 1 thread per rank";

LaunchTimes measured(const std::string& name, std::vector<double> step_s) {
  return {name, std::move(step_s), "", {}};
}

Launches launches_at(const std::string& start, std::map<std::string, LaunchTimes> points) {
  return {kMachine, {{start + " node", start}}, std::move(points), {{"torch", {start}}}};
}

Launches read_back(const std::string& text) { return read_baseline(text, kMachine, "b.json"); }

TEST(Baseline, KeepsWhatWasNotMeasuredAgain) {
  Launches first = launches_at("2026-01-01", {{"a", measured("A", {1, 2})}, {"b", measured("B", {3})}});
  first.points["a"].reference = Reference{1, 0.5, std::nan("")};
  const std::string old = to_baseline(first, "", "b.json").text;
  Launches second = launches_at("2026-01-02", {{"a", measured("A", {1.5})}, {"c", measured("C", {4})}});
  second.points["b"] = {"B", {}, "failed: rank 1 died", {}};
  const Baseline both = to_baseline(second, old, "b.json");
  EXPECT_EQ(both.num_written, 2u);
  EXPECT_EQ(both.num_kept, 1u);
  const Launches is = read_back(both.text);
  ASSERT_EQ(is.points.size(), 3u);
  EXPECT_EQ(is.points.at("a").step_s, std::vector<double>{1.5});
  EXPECT_EQ(is.points.at("a").reference->lower, 0.5);
  EXPECT_TRUE(std::isnan(is.points.at("a").reference->upper));
  EXPECT_EQ(is.points.at("b").step_s, std::vector<double>{3});
  EXPECT_EQ(is.points.at("b").name, "B");
  EXPECT_EQ(is.points.at("c").step_s, std::vector<double>{4});
  EXPECT_EQ(is.started.size(), 2u);  // the times of b are still those of the first launch
  EXPECT_EQ(is.environment.at("torch").size(), 2u);

  // Starts of launches that no point uses any more are dropped.
  const Baseline all_anew = to_baseline(first, old, "b.json");
  EXPECT_EQ(all_anew.num_kept, 0u);
  EXPECT_EQ(all_anew.text, old);
}

std::string with_points(const std::string& points) {
  return R"({"shardmark_baseline": 1, "machines": {")" + kMachine +
         R"(": {"started": {}, "environment": {}, "points": {)" + points + "}}}}";
}

TEST(Baseline, KeepsAReferenceWithoutTimes) {
  const std::string by_hand = with_points(R"("a": {"name": "A", "reference": {"value": 2, "upper": 3}})");
  EXPECT_EQ(read_back(by_hand).points.at("a").step_s, std::vector<double>{2});
  const Baseline written =
      to_baseline(launches_at("2026-01-02", {{"c", measured("C", {4})}}), by_hand, "b.json");
  EXPECT_THAT(written.text,
              HasSubstr(R"("a": {"name":"A","reference":{"value":2.0,"lower":null,"upper":3.0}})"));
  EXPECT_EQ(written.num_kept, 0u);  // no launch has measured it
  EXPECT_EQ(read_back(written.text).started.size(), 1u);
}

TEST(Baseline, NamesTheSlipAndItsPlace) {
  const std::string place = "b.json: machines." + kMachine + ".points.a";
  const std::vector<std::pair<std::string, std::string>> slips = {
      {R"({"value": 1})",
       ".reference: expected 'lower', 'upper' or both in seconds; without them it decides nothing"},
      {R"({"value": 1, "lower": null, "upper": null})", ".reference: expected 'lower', 'upper' or both"},
      {R"({"value": 1, "uper": 2})",
       ".reference: unknown key 'uper'; did you mean 'upper'? accepted: value, lower, upper"},
      {R"({"value": 1, "lower": 2, "upper": 0.5})", ".reference: expected lower <= value <= upper, got {"},
      {R"({"value": 3, "lower": 1, "upper": 2})", ".reference: expected lower <= value <= upper, got {"},
      {R"({"lower": 1, "upper": 2})", ".reference.value: expected seconds, more than 0"},
      {R"({"value": 1, "upper": "2"})", ".reference.upper: expected seconds, more than 0"},
      {R"([1, 2])", ".reference: expected an object"}};
  for (const auto& [reference, message] : slips) {
    const std::string text = with_points(R"("a": {"step_s": [1], "reference": )" + reference + "}");
    EXPECT_THAT(usage_error([&] { read_back(text); }), HasSubstr(place + message));
    EXPECT_THAT(usage_error([&] { to_baseline(launches_at("x", {}), text, "b.json"); }),
                HasSubstr(place + message));
  }
  EXPECT_THAT(usage_error([&] { read_back(with_points(R"("a": {"steps": [1]})")); }),
              HasSubstr(place + ": unknown key 'steps'; did you mean 'step_s'?"));
  EXPECT_THAT(usage_error([&] { read_back(with_points("\n\"a\": {\"step_s\": [1],}")); }),
              HasSubstr("b.json:2: not valid JSON"));
  EXPECT_THAT(usage_error([&] { read_back(with_points(R"("a": {"step_s": [1e999]})")); }),
              HasSubstr("b.json: a number is too large"));
}

TEST(Baseline, HoldsNoMoreLaunchesThanAreCompared) {
  const auto text = [](size_t launches) {
    std::string step_s = "1";
    for (size_t i = 1; i < launches; ++i) step_s += ",1";
    return with_points(R"("a": {"step_s": [)" + step_s + "]}");
  };
  EXPECT_EQ(read_back(text(kMostLaunches)).points.at("a").step_s.size(), kMostLaunches);
  EXPECT_THAT(usage_error([&] { read_back(text(100'000)); }),
              HasSubstr(".points.a.step_s: expected at most 100 launches, got 100000; keep the latest"));
}

}  // namespace
}  // namespace shardmark

// Tests how many layouts are worth measuring, and how steps grow with nodes, with the data of the playbook.
// Recomputes the figures in analysis/predict/README.md and on the screen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/predict/shortlist.h"
#include "base/stats.h"
#include "playbook_fixture.h"
#include "readme_block.h"

namespace shardmark {
namespace {

// Returns the predictions without the growth with the number of nodes.
Job without_growth(Job job) {
  for (PlaybookPrediction& one : job) one.step_s = one.simulated_s;
  return job;
}

// Returns whether the shortlist contains a layout within 5 % of the best of the job.
bool holds_a_good_one(const Job& job, size_t size) {
  double most = 0, listed = 0;
  for (const PlaybookPrediction& one : job) most = std::max(most, tokens_per_s(one));
  for (const PlaybookPrediction& one : playbook_shortlist(job, size))
    listed = std::max(listed, tokens_per_s(one));
  return listed >= 0.95 * most;
}

// Returns the smallest size of such a shortlist.
size_t needed(const Job& job) {
  size_t size = 1;
  while (!holds_a_good_one(job, size)) ++size;
  return size;
}

// Returns the size that suffices for nine of ten jobs, plus one, as shortlist.h defines it.
size_t calibrated(std::vector<size_t> of_each) {
  std::sort(of_each.begin(), of_each.end());
  return of_each[(9 * of_each.size() + 9) / 10 - 1] + 1;
}

// Returns for how many jobs a size calibrated on the other jobs suffices.
size_t left_out_that_hold(const std::vector<size_t>& of_each) {
  size_t sharding = 0;
  for (size_t i = 0; i < of_each.size(); ++i) {
    std::vector<size_t> others = of_each;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    sharding += of_each[i] <= calibrated(others) ? 1 : 0;
  }
  return sharding;
}

// Draws half of the layouts of a job many times. Returns the share of draws for which the shortlist contains
// a good layout of that half.
double share_of_halves(const Job& job, size_t size) {
  constexpr int kDraws = 200;
  std::mt19937_64 random(1);
  int sharding = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Job half = job;
    for (size_t i = 0; i < half.size() / 2; ++i) std::swap(half[i], half[i + random() % (half.size() - i)]);
    half.resize(half.size() / 2);
    sharding += holds_a_good_one(half, size) ? 1 : 0;
  }
  return static_cast<double>(sharding) / kDraws;
}
// --layouts suggests a number of layouts that is calibrated on these jobs. The screen says how well it works
// for them.
TEST(Playbook, ShortlistsHoldAGoodLayout) {
  struct Group {
    std::vector<size_t> needed = {}, needed_without = {};
    int64_t listed = 0, first = 0, rule = 0;
    double halves = 0;
    std::vector<double> losses = {};
    std::string of_all(int64_t count) const { return fmt::format("{} of {}", count, needed.size()); }
  };
  Group few, many;
  for (const auto& [key, job] : jobs_of(all_predictions())) {
    Group& group = key.second <= kFewNodes ? few : many;
    EXPECT_EQ(job.front().growth.has_value(), key.second > 2);
    const size_t size = shortlist_size(key.second, job.front().growth.has_value());
    group.needed.push_back(needed(job));
    group.needed_without.push_back(needed(without_growth(job)));
    group.listed += holds_a_good_one(job, size) ? 1 : 0;
    group.first += loss_in_percent(job, by_step) <= 5 ? 1 : 0;
    group.rule += loss_in_percent(job, by_rule) <= 5 ? 1 : 0;
    group.halves += share_of_halves(job, size);
    const PlaybookJob listed = playbook_shortlist(job, size);
    const auto best = std::min_element(listed.begin(), listed.end(), [](const auto& a, const auto& b) {
      return a.row->step_s < b.row->step_s;
    });
    group.losses.push_back(loss_in_percent(job, [&](const auto& one) { return one.row != best->row; }));
  }
  EXPECT_EQ(calibrated(few.needed), kOnFewNodes);
  EXPECT_EQ(calibrated(few.needed_without), kOnFewNodes);
  EXPECT_EQ(calibrated(many.needed), kOnManyNodes);
  EXPECT_EQ(calibrated(many.needed_without), kWithoutGrowth);

  EXPECT_EQ(how_it_was_checked(),
            fmt::format("Checked on published layouts of Llama models on 2 to 64 nodes of 8 H100 "
                        "(analysis/predict/README.md): a shortlist of {} had a layout within 5 % of the best "
                        "in {} sets on 2 "
                        "to 8 nodes, one of {} in {} on more; the first by prediction alone was within 5 % "
                        "in {} and {} of them, the rule's choice in {} and {}.",
                        kOnFewNodes, few.of_all(few.listed), kOnManyNodes, many.of_all(many.listed),
                        few.first, many.first, few.rule, many.rule));
  expect_row_of_predict_readme(
      "sets of layouts whose shortlist holds one within 5 % of the best",
      fmt::format("{} on 2 to 8 nodes with {} layouts, {} on 16 to 64 with {}; our first choice alone is one "
                  "in {} and {}, the rule's in {} and {}",
                  few.of_all(few.listed), kOnFewNodes, many.of_all(many.listed), kOnManyNodes, few.first,
                  many.first, few.rule, many.rule));
  std::vector<double> losses = few.losses;
  losses.insert(losses.end(), many.losses.begin(), many.losses.end());
  expect_row_of_predict_readme(
      "tokens/s that the best of the shortlist loses",
      fmt::format("mean {:.1f} %, at most {:.1f} %", mean(losses), quantile(losses, 1)));
  expect_row_of_predict_readme(
      "sets that hold one, where the other sets say how many layouts a shortlist has",
      fmt::format("{} on 2 to 8 nodes, {} on 16 to 64; without growth with nodes {} and {}",
                  few.of_all(left_out_that_hold(few.needed)), many.of_all(left_out_that_hold(many.needed)),
                  few.of_all(left_out_that_hold(few.needed_without)),
                  many.of_all(left_out_that_hold(many.needed_without))));
  const auto percent = [](const Group& group) {
    return 100 * group.halves / static_cast<double>(group.needed.size());
  };
  expect_row_of_predict_readme(
      "shortlists of halves of the sets' layouts, 200 drawn of each, that hold one within 5 % of the best of "
      "the half",
      fmt::format("{:.0f} % on 2 to 8 nodes, {:.0f} % on 16 to 64", percent(few), percent(many)));
}

// Predicts the steps on each number of nodes with a growth that is fitted to the other rows. Returns the
// factor by which the median is off, averaged over 2 to 64 nodes. `operations` gives the quantity that grows
// with each doubling of the nodes.
template <class Operations>
double factor_off(const Operations& operations, bool only_fewer = false) {
  const std::vector<PlaybookPrediction>& all = predictions_of_all_rows();
  std::vector<double> logs;
  for (const int64_t nodes : {2, 4, 8, 16, 32, 64}) {
    std::vector<GrowthRow> others;
    for (const PlaybookPrediction& one : all)
      if (one.row->ran() && (only_fewer ? one.row->nodes < nodes : one.row->nodes != nodes))
        others.push_back({one.row->nodes, operations(one), one.simulated_s, one.row->step_s});
    const auto growth = fit_growth(others);
    std::vector<double> errors;
    for (const PlaybookPrediction& one : all)
      if (one.row->ran() && one.row->nodes == nodes) {
        const double added_s = growth ? growth->added_s(nodes, operations(one)).value : 0;
        errors.push_back(std::abs(std::log(std::max(1e-3, one.simulated_s + added_s) / one.row->step_s)));
      }
    logs.push_back(median(errors));
  }
  return std::exp(mean(logs));
}

// Returns the sizes of shortlists that jobs on many nodes need if the growth is fitted to rows on fewer
// nodes.
template <class Operations>
std::vector<size_t> needed_on_many_nodes(const Operations& operations) {
  std::vector<size_t> sizes;
  for (auto [key, job] : jobs_of(all_predictions())) {
    if (key.second <= kFewNodes) continue;
    std::vector<GrowthRow> others;
    for (const PlaybookPrediction& one : predictions_of_all_rows())
      if (one.row->ran() && one.row->nodes < key.second)
        others.push_back({one.row->nodes, operations(one), one.simulated_s, one.row->step_s});
    const auto growth = fit_growth(others);
    for (PlaybookPrediction& one : job)
      one.step_s = one.simulated_s + (growth ? growth->added_s(key.second, operations(one)).value : 0);
    sizes.push_back(needed(job));
  }
  return sizes;
}

// Two forms of the growth have nearly the smallest errors. Of these two, the one in use ranks layouts better,
// as growth.h explains.
TEST(Playbook, StepsGrowWithNodesAsTheReadmeSays) {
  const auto of_operations = [](const auto& one) { return one.across.operations; };
  const auto of_their_time = [](const auto& one) { return one.across.seconds; };
  const auto of_step = [](const auto& one) { return one.simulated_s; };
  const auto of_none = [](const auto&) { return 0.0; };
  const auto of_each_step = [](const auto& one) { return one.row->nodes > 1 ? 1.0 : 0.0; };
  const double none = factor_off(of_none), operations = factor_off(of_operations);
  EXPECT_LT(operations, 0.8 * none);
  EXPECT_LT(operations, factor_off(of_step));
  EXPECT_LT(operations, factor_off(of_each_step));
  expect_row_of_predict_readme(
      "steps on one number of nodes with the growth of all others, by form: factor by which the median is "
      "off, mean over 2 to 64 nodes",
      fmt::format("{:.2f} without growth; {:.2f} seconds for each operation across nodes (used); {:.2f} a "
                  "share of what these take; {:.2f} seconds for a step; {:.2f} a share of the step",
                  none, operations, factor_off(of_their_time), factor_off(of_each_step),
                  factor_off(of_step)));
  expect_row_of_predict_readme(
      "steps with the growth of fewer nodes alone: the same factor",
      fmt::format("{:.2f} seconds for each operation across nodes", factor_off(of_operations, true)));

  expect_row_of_predict_readme(
      "layouts that shortlists on 16 to 64 nodes need, by form, with the growth of fewer nodes",
      fmt::format("{} without growth; {} seconds for each operation across nodes (used); {} a share of what "
                  "these take",
                  fmt::join(needed_on_many_nodes(of_none), ", "),
                  fmt::join(needed_on_many_nodes(of_operations), ", "),
                  fmt::join(needed_on_many_nodes(of_their_time), ", ")));
  const auto all = playbook_growth(predictions_of_all_rows(), [](int64_t) { return true; });
  ASSERT_TRUE(all && all->is_seen());
  expect_row_of_predict_readme("growth that all rows say", all->text());
  EXPECT_FALSE(playbook_growth(predictions_of_all_rows(), [](int64_t nodes) { return nodes == 4; }));
}

}  // namespace
}  // namespace shardmark

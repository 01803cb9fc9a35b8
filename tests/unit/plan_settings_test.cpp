// Tests what a suite may list under `environment`, and how ranks are started for each of these settings.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/starts.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

std::string suite_with(const std::string& environment) {
  return "environment: " + environment + "\ncollectives: {operation: all_reduce, bytes: [8, 16]}\n";
}

std::vector<std::string> environments_of(const std::string& environment) {
  std::vector<std::string> found;
  for (const StartOfPoints& start : starts_of(parse_suite(suite_with(environment), "s.yaml").points))
    found.push_back(start.environment);
  return found;
}

using Texts = std::vector<std::string>;

TEST(Environment, IsEveryCombinationSortedByName) {
  EXPECT_EQ(environments_of("{NCCL_PROTO: [LL, Simple], NCCL_ALGO: Ring}"),
            (Texts{"NCCL_ALGO=Ring NCCL_PROTO=LL", "NCCL_ALGO=Ring NCCL_PROTO=Simple"}));
  EXPECT_EQ(environments_of("{threads: [1, 2], bind: none}"),
            (Texts{"bind=none threads=1", "bind=none threads=2"}));
}

TEST(Environment, MayLeaveAVariableUnset) {
  EXPECT_EQ(environments_of("{NCCL_ALGO: [~, Tree]}"), (Texts{"", "NCCL_ALGO=Tree"}));
  EXPECT_EQ(environments_of("[{}, {NCCL_ALGO: [Ring, Tree], NCCL_PROTO: LL}, {NCCL_ALGO: NVLS}]"),
            (Texts{"", "NCCL_ALGO=Ring NCCL_PROTO=LL", "NCCL_ALGO=Tree NCCL_PROTO=LL", "NCCL_ALGO=NVLS"}));
}

TEST(Environment, AsksForEachStartOnceWhateverTheOrder) {
  EXPECT_EQ(environments_of("[\"UCX_TLS=tcp NCCL_ALGO=Ring\", {NCCL_ALGO: Ring, UCX_TLS: tcp}]"),
            Texts{"NCCL_ALGO=Ring UCX_TLS=tcp"});
}

TEST(Environment, IsOfBlocksToo) {
  const auto points = parse_suite(
                          "collectives:\n  - {operation: all_reduce, bytes: 8}\n"
                          "  - {operation: all_reduce, bytes: 8, environment: {NCCL_ALGO: Ring}}\n",
                          "s.yaml")
                          .points;
  const auto starts = starts_of(points);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(names_set(points), Texts{"NCCL_ALGO"});
  EXPECT_NE(point_id(starts[0].points[0]), point_id(starts[1].points[0]));
}

// Each repetition is a separate start, and the settings take turns. So a change of the machine during the
// sweep affects all settings equally.
TEST(Environment, StartsEachSettingAnewForEachRepetition) {
  const Suite suite = parse_suite("repeats: 3\n" + suite_with("{NCCL_ALGO: [~, Ring, Tree]}"), "s.yaml");
  std::vector<Point> plan = make_plan(suite, {2});
  std::vector<Point> shuffled;
  for (const size_t index : run_order(suite, plan)) shuffled.push_back(plan[index]);
  std::vector<std::string> order;
  for (const StartOfPoints& start : starts_of(plan)) {
    order.push_back(fmt::format("{} {}", start.repetition, start.environment));
    EXPECT_EQ(start.points.size(), 2u);
    for (const Point& point : start.points) EXPECT_EQ(point.repeat + 1, start.repetition);
  }
  EXPECT_EQ(order, (Texts{"1 ", "1 NCCL_ALGO=Ring", "1 NCCL_ALGO=Tree", "2 ", "2 NCCL_ALGO=Ring",
                          "2 NCCL_ALGO=Tree", "3 ", "3 NCCL_ALGO=Ring", "3 NCCL_ALGO=Tree"}));
  const auto of_shuffled = starts_of(shuffled);
  for (size_t i = 0; i < of_shuffled.size(); ++i)
    EXPECT_EQ(of_shuffled[i].environment, of_shuffled[i % 3].environment) << "each turn has the same order";
}

TEST(Environment, LeavesRepeatsInOneStartWhereNothingIsSet) {
  const Suite suite = parse_suite("repeats: 3\ncollectives: {operation: all_reduce, bytes: 8}\n", "s.yaml");
  const auto starts = starts_of(make_plan(suite, {2}));
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].repetition, 0);
  EXPECT_EQ(starts[0].points.size(), 3u);
}

// The shipped suites about settings have enough starts for a verdict.
TEST(Environment, OfTheShippedSuitesIsStartedOftenEnough) {
  for (const char* name : {"settings", "gpu-settings"}) {
    const Suite suite = read_suite(std::string(SHARDMARK_SOURCE_DIR "/suites/") + name + ".yaml", {});
    std::map<std::string, int> starts;
    for (const StartOfPoints& start : starts_of(make_plan(suite, {2}))) ++starts[start.environment];
    EXPECT_GE(starts.size(), 4u);
    for (const auto& [setting, count] : starts) EXPECT_GE(count, 3) << name << ": " << setting;
  }
}

TEST(Environment, RefusesByPlaceAndReason) {
  const auto refuses = [](const std::string& environment, const std::string& words) {
    try {
      parse_suite(suite_with(environment), "s.yaml");
      ADD_FAILURE() << environment;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(words));
      EXPECT_THAT(error.what(), ::testing::StartsWith("s.yaml:1:"));
    }
  };
  refuses("{LD_PRELOAD: x.so}",
          "s.yaml:1:27: LD_PRELOAD: not a variable that a suite may set; accepted: OMP_*");
  refuses("{PATH: x}", "not a variable");
  for (const char* secret : {"NCCL_API_TOKEN", "TORCH_AUTH", "OMPI_MCA_auth_file", "NCCL_PASSWD",
                             "TORCH_apikey", "UCX_PWD", "FI_CXI_AUTH_KEY"})
    refuses(fmt::format("{{{}: x}}", secret), "a variable that no study may hold");
  refuses("{SLURM_JOB_ID: 4}", "not a variable");
  refuses("{OMP_NUM_THREADS: 2}", "write threads: [1, 2]");
  refuses("{CUDA_VISIBLE_DEVICES: 0}", "set it for all of launch");
  refuses("{NCCL_ALGO: \"a b\"}", "without blanks");
  refuses("{NCCL_ALGO: \"\"}", "~: not set");
  refuses("{threads: 0}", "from 1 to 4096");
  refuses("{bind: core}", "auto, none");
  refuses("\"NCCL_ALGO\"", "NCCL_ALGO");
  refuses("{NCCL_ALGO: {a: b}}", "NCCL_ALGO");
}

TEST(Environment, DiffersByTheFirstNameThatDoes) {
  EXPECT_EQ(difference({{"A", "1"}}, {{"A", "1"}}), "");
  EXPECT_EQ(difference({{"A", "1"}}, {}), "A is not set");
  EXPECT_EQ(difference({{"A", "1"}}, {{"A", "2"}}), "A is 2");
  EXPECT_EQ(difference({}, {{"A", "2"}}), "A is 2");
}

TEST(Environment, KeepsNoSecretsAndNothingOfTheLauncher) {
  for (const char* kept : {"NCCL_ALGO", "OMPI_MCA_btl", "SLURM_JOB_ID", "FI_PROVIDER", "NCCL_IB_PKEY"})
    EXPECT_TRUE(is_kept_variable(kept));
  for (const char* not_kept :
       {"HOME", "TORCH_HUB_TOKEN", "OMPI_MCA_orte_hnp_uri", "AWS_SECRET_ACCESS_KEY", "TORCH_AUTH"})
    EXPECT_FALSE(is_kept_variable(not_kept));
  EXPECT_TRUE(is_handed_variable("NCCL_ALGO"));
  EXPECT_FALSE(is_handed_variable("OMP_NUM_THREADS"));
}

}  // namespace
}  // namespace shardmark

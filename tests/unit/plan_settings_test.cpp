// Settings: what a suite may list under `environment`, and the starts of the ranks that follow.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
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

// Tests which environment variables indicate a heterogeneous Slurm job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "launch/heterogeneous_job.h"

namespace shardmark {
namespace {

std::optional<HeterogeneousJob> job_of(std::map<std::string, std::string> variables) {
  return heterogeneous_job([&](const std::string& name) { return variables[name]; });
}

TEST(HeterogeneousJob, HasMoreThanOneGroup) {
  EXPECT_FALSE(job_of({}));
  EXPECT_FALSE(job_of({{"SLURM_HET_SIZE", "1"}}));
  EXPECT_FALSE(job_of({{"SLURM_HET_SIZE", "two"}}));
  EXPECT_EQ(job_of({{"SLURM_HET_SIZE", "2"}})->nodes, 2);  // each group has at least one node
  const auto job = job_of({{"SLURM_HET_SIZE", "3"},
                           {"SLURM_JOB_NUM_NODES_HET_GROUP_0", "4"},
                           {"SLURM_JOB_NUM_NODES_HET_GROUP_2", "8"}});
  EXPECT_EQ(job->groups, 3);
  EXPECT_EQ(job->nodes, 13);
  EXPECT_THAT(refusal_of(*job, "its ranks are on 4 of them"), ::testing::HasSubstr("--het-group=0,1,2 "));
}

TEST(HeterogeneousJob, IsThisJob) {
  std::map<std::string, std::string> variables = {
      {"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_ID_HET_GROUP_0", "70"}, {"SLURM_JOB_ID_HET_GROUP_1", "71"}};
  EXPECT_TRUE(job_of(variables));
  for (const auto& [id, is_ours] : {std::pair("70", true), {"71", true}, {"72", false}}) {
    variables["SLURM_JOB_ID"] = id;
    EXPECT_EQ(job_of(variables).has_value(), is_ours) << id;
  }
}

}  // namespace
}  // namespace shardmark

// Tests a study that another launch resumes: what must not have changed, what may differ, and what is
// reported about it.
#include <gmock/gmock.h>

#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

TEST(StudyResumed, NamesWhatDiffers) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Study::create(path, sample_environment()).append(filled_record(1));
  const auto message = [&](auto change) {
    Environment now = sample_environment();
    change(now);
    return usage_error([&] { Study::resume(path, now); });
  };
  for (int round = 0; round < 2; ++round) {  // first a journal, then a published file
    EXPECT_THAT(message([](Environment& e) { e.world_ranks = 4; }), HasSubstr(": ranks (3, now 4);"));
    EXPECT_THAT(message([](Environment& e) { e.threads_per_rank = 1; }),
                HasSubstr(": threads per rank (2, now 1);"));
    EXPECT_THAT(message([](Environment& e) { e.transport = "nccl"; }),
                HasSubstr(": transport (mpi, now nccl);"));
    EXPECT_THAT(message([](Environment& e) { e.devices[2] = "H100"; }),
                HasSubstr(": device of rank 2 (cpu, now H100);"));
    EXPECT_THAT(message([](Environment& e) { e.rank_nodes[1] = "n2"; }),
                HasSubstr(": node of rank 1 (node 0, now node 1);"));
    EXPECT_THAT(message([](Environment& e) { (*e.versions)["torch"] = "2.12"; }),
                HasSubstr(": torch (\"2.11.0\", now \"2.12\");"));
    EXPECT_THAT(message([](Environment& e) { (*e.versions)["nccl"] = "2.28"; }),
                HasSubstr(": nccl (\"none\", now \"2.28\");"));
    EXPECT_THAT(message([](Environment& e) { e.revision = "def"; }),
                HasSubstr(": revision (abc123, now def);"));
    EXPECT_THAT(message([](Environment& e) { e.revision = "def", e.world_ranks = 1; }),
                HasSubstr("now 1), revision"));
    if (round == 0) Study::resume(path, sample_environment()).publish();
  }
  ASSERT_EQ(read_study(path).records.size(), 1u);  // the refusals did not change the study
  expect_same(read_study(path).records[0], filled_record(1));
  EXPECT_FALSE(std::filesystem::exists(path + ".journal"));
}

TEST(StudyResumed, TellsAnEditOfTheSuiteAndKeepsBothTexts) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Environment before = sample_environment(), now = before;
  before.suite_text = "name: quick\nrepeats: 5\nseed: 1\n";
  now.suite_text = "name: quick\nrepeats: 1\nseed: 2\n# more\n";
  Study::create(path, before).append(filled_record(1));
  ::testing::internal::CaptureStderr();
  Study::resume(path, now).publish();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("suites/quick.yaml was edited since " + path +
                " began, and points of both texts are in it: line 2: 'repeats: 5' is 'repeats: 1' now, "
                "and 2 more lines"));
  ::testing::internal::CaptureStderr();
  Study::resume(path, now).publish();  // the suite has not changed again
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const Environment kept = read_study(path).environment;
  EXPECT_EQ(kept.suite_text, now.suite_text);
  const auto& launches = (*kept.facts)["resumed"];
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]["former_suite"], before.suite_text);
  EXPECT_FALSE(launches[1].contains("former_suite"));
}

TEST(StudyResumed, AnywhereIsOfItsLatestLaunchAndSaysWhatChanged) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Study::create(path, sample_environment()).append(filled_record(1));
  Environment now = sample_environment();
  now.world_ranks = 4;
  now.started = "2026-02-02T00:00:00Z";
  for (int round = 0; round < 2; ++round) {  // first a journal, then a published file
    Study study = Study::resume(path, now, {}, GoesOn::anywhere);
    now.world_ranks = 5;
    study.publish();
  }
  const Environment kept = read_study(path).environment;
  EXPECT_EQ(kept.world_ranks, 5);
  EXPECT_EQ(kept.started, sample_environment().started);
  const auto& launches = (*kept.facts)["resumed"];
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]["changed"], "ranks (3, now 4)");
  EXPECT_EQ(launches[1]["changed"], "ranks (4, now 5)");
}

}  // namespace
}  // namespace shardmark

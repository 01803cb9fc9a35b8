// Tests a point during which a rank crashed: its outcome, its second attempt, and that only one record
// remains.
#include <gmock/gmock.h>

#include "schema/journal.h"
#include "schema/json.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

TEST(Study, RemembersAPointThatEndedTheJob) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Record first = filled_record(1), second = filled_record(2);
  for (Record* record : {&first, &second}) {
    record->attempts = 1;
    record->ended_job = false;
  }
  {
    Study study = Study::create(path, sample_environment());
    study.begin(first);
    EXPECT_THAT(usage_error([&] { Study::record_crash(path, Outcome::failed, "killed"); }),
                HasSubstr("is being written by another process"));
    study.append(first);
    study.begin(second);
    EXPECT_EQ(read_study(path).records.size(), 1u) << "a point that began is no record";
  }
  const auto dead = Study::record_crash(path, Outcome::failed, "rank 1 was killed");
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(dead->id, second.id);
  EXPECT_FALSE(Study::record_crash(path, Outcome::failed, "again").has_value()) << "it has its record";
  {
    Study study = Study::resume(path, sample_environment());
    EXPECT_TRUE(study.known().at(first.id).is_over());
    EXPECT_FALSE(study.known().at(second.id).is_over()) << "it is to be tried again";
    EXPECT_EQ(study.known().at(second.id).attempts, 1);
    second.attempts = 2;
    study.append(second);
    EXPECT_TRUE(study.known().at(second.id).is_over());
    expect_records(read_study(path), {first, second});
    study.publish();
  }
  expect_records(read_study(path), {first, second});
}

// A job that reached its time limit leaves a point without an outcome. If the next job fails for another
// reason, that point is not blamed.
TEST(Study, APointOfAnEarlierJobIsNotBlamed) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Study::create(path, sample_environment()).begin(filled_record(1));
  Study::resume(path, sample_environment());
  EXPECT_FALSE(Study::record_crash(path, Outcome::failed, "before any point began").has_value());
}

TEST(Study, ASecondDeathIsFinal) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Record record = filled_record(1);
  record.ended_job = false;
  for (int64_t attempt = 1; attempt <= 2; ++attempt) {
    record.attempts = attempt;
    Study::resume(path, sample_environment()).begin(record);
    Study::record_crash(path, Outcome::out_of_memory, "the kernel ended it");
  }
  Study study = Study::resume(path, sample_environment());
  EXPECT_TRUE(study.known().at(record.id).is_over());
  study.publish();
  const Record kept = read_study(path).records.at(0);
  EXPECT_EQ(kept.outcome, Outcome::out_of_memory);
  EXPECT_EQ(kept.attempts, 2);
  EXPECT_TRUE(kept.ended_job);
}

// After a repair of the machine, failed points can be measured again in the same study, also across another
// crash.
TEST(Study, MeasuresFailedPointsAgainWhenAsked) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Record good = filled_record(1), failed = filled_record(2), dead = filled_record(3);
  good.ended_job = failed.ended_job = false;
  good.outcome = Outcome::ok;
  failed.outcome = Outcome::failed;
  dead.outcome = Outcome::out_of_memory;
  dead.ended_job = true;
  dead.attempts = Known::kMostAttempts;
  {
    Study study = Study::create(path, sample_environment());
    for (const Record& record : {good, failed, dead}) study.append(record);
    study.publish();
  }
  const DueRule is_due = [](const std::string&, const Known& known) { return known.has_failed(); };
  EXPECT_EQ(Study::resume(path, sample_environment()).num_due(), 0);
  EXPECT_EQ(Study::resume(path, sample_environment(), is_due).num_due(), 2);
  expect_records(read_study(path), {good, failed, dead});
  {
    Study study = Study::resume(path, sample_environment());
    EXPECT_TRUE(study.known().at(good.id).is_over());
    for (const Record& record : {failed, dead}) {
      EXPECT_FALSE(study.known().at(record.id).is_over());
      EXPECT_EQ(study.known().at(record.id).attempts, 0) << "as if it had never been begun";
    }
    EXPECT_EQ(study.num_due(), 2) << "from before";
    failed.outcome = Outcome::ok;
    study.append(failed);
  }
  dead.attempts = 1;
  Study::resume(path, sample_environment()).begin(dead);
  Study::record_crash(path, Outcome::failed, "once more");
  Study study = Study::resume(path, sample_environment());
  EXPECT_TRUE(study.known().at(failed.id).is_over());
  EXPECT_FALSE(study.known().at(dead.id).is_over()) << "one retry, as ever";
  EXPECT_TRUE(Study::is_busy(path));
  dead.outcome = Outcome::ok;
  dead.ended_job = false;
  dead.attempts = 2;
  study.append(dead);
  study.publish();
  expect_records(read_study(path), {good, failed, dead});
  EXPECT_FALSE(Study::is_busy(path));
}

std::vector<Series> interval(double value) {
  return {{"interval_end", 1, 1, {value}}, {"interval_time", 2, 1, {value, value + 0.5}}};
}

// If ranks die during a run of hours, the intervals that were completed are kept.
TEST(Study, KeepsTheIntervalsOfAPointThatDies) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Record record = filled_record(1);
  record.samples.clear();
  {
    Study study = Study::create(path, sample_environment());
    study.begin(record);
    EXPECT_FALSE(read_study(path).under_way.has_value()) << "nothing to tell yet";
    for (const double value : {1.0, 2.0, 3.0}) study.extend(record.id, interval(value));
    const auto seen = read_study(path).under_way;
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->series("interval_time")->values, (std::vector<double>{1, 2, 3, 1.5, 2.5, 3.5}))
        << "[rank][interval]";
  }
  ASSERT_TRUE(Study::record_crash(path, Outcome::failed, "rank 1 was killed").has_value());
  const StudyData after = read_study(path);
  EXPECT_FALSE(after.under_way.has_value());
  ASSERT_EQ(after.records.size(), 1u);
  EXPECT_EQ(after.records[0].outcome, Outcome::failed);
  EXPECT_EQ(after.records[0].series("interval_end")->values, (std::vector<double>{1, 2, 3}));
}

// The second attempt starts from the beginning, and an interval that was written only partly affects nothing
// else.
TEST(Study, IntervalsBelongToTheirAttempt) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Record record = filled_record(1);
  record.samples.clear();
  {
    Study study = Study::create(path, sample_environment());
    study.begin(record);
    study.extend(record.id, interval(1));
    study.begin(record);
    study.extend(record.id, interval(2));
    study.extend("another", interval(3));
    study.extend(record.id,
                 {{"interval_end", 2, 1, {0, 0}}});  // the number of rows differs from the earlier intervals
    study.extend(record.id, interval(4));
  }
  std::filesystem::resize_file(samples_path(path), std::filesystem::file_size(samples_path(path)) - 1);
  const auto seen = read_study(path).under_way;  // without the last interval, whose samples are incomplete
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->series("interval_end")->values, std::vector<double>{2});
  Study::resume(path, sample_environment());
  EXPECT_FALSE(read_study(path).under_way.has_value()) << "its job is over, and another has begun";
}

// A requeued job may run on other nodes.
TEST(Study, AnotherKernelIsNoReasonToRefuse) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Environment environment = sample_environment();
  (*environment.versions)["kernel"] = "5.14";
  Study::create(path, environment);
  (*environment.versions)["kernel"] = "6.1";
  Study::resume(path, environment);
  const Environment kept = read_study(path).environment;
  EXPECT_EQ((*kept.versions)["kernel"], "5.14");
  EXPECT_EQ((*kept.facts)["resumed"].back()["kernel"], "6.1");
}

}  // namespace
}  // namespace shardmark

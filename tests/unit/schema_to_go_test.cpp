// Tests how the journal of a sweep tells how many points remain to be measured.
#include <gtest/gtest.h>

#include "schema/json.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

// The ids of the planned points are only in the journal. The attempts in a search for the largest batch are
// not among them.
TEST(StudyToGo, AJournalTellsHowManyPointsAreToGo) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Point search;
  search.workload = "training";
  search.training.batch_size = kLargest;
  Environment environment = sample_environment();
  (*environment.facts)["planned"] = {"a", "b", "c", point_id(search)};
  const auto record = [](const std::string& id, Point point = {}) {
    Record one;
    one.id = id;
    one.point = std::move(point);
    return one;
  };
  Study study = Study::create(path, environment);
  const auto to_go = [&] { return read_study(path).num_to_go; };
  EXPECT_EQ(to_go(), 4);
  Record crashed = record("a");
  crashed.ended_job = true;  // it will be tried once more
  study.append(crashed);
  EXPECT_EQ(to_go(), 4);
  study.append(record("a"));
  EXPECT_EQ(to_go(), 3);
  for (const int64_t batch : {1, 2}) {
    Point attempt = search;
    attempt.training.batch_size = batch;
    attempt.transport = "mpi";
    study.append(record(point_id(attempt), attempt));
    EXPECT_EQ(to_go(), 3) << "the search goes on";
  }
  study.append(record("b"));
  EXPECT_EQ(to_go(), 1);
  EXPECT_FALSE((*read_study(path).environment.facts).contains("planned"));
  study.publish();
  EXPECT_EQ(to_go(), std::nullopt);
  EXPECT_EQ(to_json(read_study(path).environment), to_json(sample_environment()));
}

}  // namespace
}  // namespace shardmark

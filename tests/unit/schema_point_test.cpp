// Tests the identity of a point, which contains everything that defines the measurement and nothing else.
#include "schema/point.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

Point training_point() {
  Point point = filled_record(1).point;
  point.workload = "training";
  return point;
}

Point collective_point() {
  Point point = filled_record(1).point;
  point.workload = "collective";
  return point;
}

template <class Whole, class Member>
bool lies_in(const Whole& whole, const Member& member) {
  const auto* start = reinterpret_cast<const char*>(&whole);
  const auto* at = reinterpret_cast<const char*>(&member);
  return at >= start && at < start + sizeof(Whole);
}

// Changes each column that belongs to a point, and checks whether the id changes as expected.
void expect_relevant(const Point& base, bool training_counts, bool collective_counts) {
  int num_columns = 0;
  Record record;
  record.point = base;
  visit_fields(record, [&](const std::string& name, const char*, const char*, auto& member) {
    if (!lies_in(record.point, member) || name == "workload" || name == "chosen" || name == "scaling") return;
    ++num_columns;
    const bool counts = lies_in(record.point.training, member)     ? training_counts
                        : lies_in(record.point.collective, member) ? collective_counts
                                                                   : true;
    const auto before = member;
    fill(member, 1000);
    EXPECT_EQ(point_id(record.point) != point_id(base), counts) << name;
    member = before;
  });
  EXPECT_GE(num_columns, 22);
}

TEST(PointId, FollowsEveryFieldOfTheWorkloadAndNoOther) {
  expect_relevant(training_point(), true, false);
  expect_relevant(collective_point(), false, true);
  EXPECT_NE(point_id(training_point()), point_id(collective_point()));
}

TEST(PointId, IgnoresWhyAPointIsImpossible) {
  Point point = training_point();
  point.impossible = "more ranks than the world has";
  EXPECT_EQ(point_id(point), point_id(training_point()));
}

TEST(PointId, IgnoresHowTheBatchWasWritten) {
  Point weak = training_point(), strong = weak;
  weak.training.scaling = "weak";
  strong.training.scaling = "strong";
  EXPECT_EQ(point_id(weak), point_id(strong));
}

TEST(PointId, IgnoresTheOrderOfOptions) {
  Point one = training_point(), other = one;
  one.training.model = {"gpt2", {{"layers", 4}, {"width", 256}}};
  other.training.model = {"gpt2", {{"width", 256}, {"layers", 4}}};
  EXPECT_EQ(point_id(one), point_id(other));
}

// The ids are hard-coded here, because studies that exist must be resumable with later versions.
TEST(PointId, IsTheSameInEveryBuild) {
  Point point;
  point.workload = "collective";
  point.ranks = 2;
  point.collective = {"all_reduce", "float32", "sum", 1 << 20, true};
  EXPECT_EQ(point_id(point), "d63d9a6e753494d3");
  point = {};
  point.workload = "training";
  point.training.strategy = {"ddp"};
  EXPECT_EQ(point_id(point), "0c077df5c82a06ba");
}

TEST(PointText, NamesWhatIsMeasured) {
  Point point;
  point.workload = "training";
  point.ranks = 2;
  point.training.model = {"gpt2", {{"layers", 4}}};
  point.training.strategy = {"fsdp"};
  point.training.batch_size = 4;
  EXPECT_EQ(to_text(point), "training gpt2(layers=4) fsdp 2 ranks batch 4");
  point.training.accumulation = 3;
  point.ranks = 1;
  EXPECT_EQ(to_text(point), "training gpt2(layers=4) fsdp 1 rank batch 4 x 3");
  point.workload = "collective";
  point.collective = {"all_reduce", "float32", "sum", 1 << 20, true};
  EXPECT_EQ(to_text(point), "all_reduce float32 sum 1.00 MiB 1 rank");
  point.collective.reduction = "none";
  EXPECT_EQ(to_text(point), "all_reduce float32 1.00 MiB 1 rank");
}

TEST(PointText, RefusesAnUnknownWorkload) {
  EXPECT_THROW(point_id(Point{}), ContractError);
  EXPECT_THROW(to_text(Point{}), ContractError);
}

TEST(OutcomeText, ReadsBack) {
  for (const char* name : {"ok", "skipped", "out_of_memory", "wrong", "failed", "timed_out"})
    EXPECT_EQ(to_text(outcome_from_text(name)), name);
  EXPECT_EQ(usage_error([] { outcome_from_text("fine"); }),
            "'fine' is not an outcome; accepted: ok, skipped, out_of_memory, wrong, failed, timed_out");
}

}  // namespace
}  // namespace shardmark

// Which records count as the same point, and what becomes of their numbers.
#include <gtest/gtest.h>

#include "analysis/merged.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record launch_of(int64_t repeat, double step_s) {
  Record record = training_record("ddp", 2, 4, step_s);
  record.point.repeat = repeat;
  record.id = point_id(record.point);
  return record;
}

TEST(Merge, RepeatsBecomeOnePointOfMedians) {
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), launch_of(1, 0.4), launch_of(2, 0.2)})});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].repeats, 3);
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.samples_per_s, 8 / 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.step_low_s, 0.1 * 0.99);  // the hull of the three intervals
  EXPECT_DOUBLE_EQ(points[0].measures.step_high_s, 0.4 * 1.01);
}

TEST(Merge, OrdersModelsByTheirNumbers) {
  std::vector<Record> records;
  for (const char* model : {"resnet(width=16)", "resnet(width=8)", "resnet(width=128)"}) {
    records.push_back(training_record("ddp", 2, 4, 0.1));
    records.back().point.training.model = choice_from_text(model);
  }
  std::string order;
  for (const MergedPoint& point : merge_repeats({study_of(records)}))
    order += to_text(point.point.training.model) + " ";
  EXPECT_EQ(order, "resnet(width=8) resnet(width=16) resnet(width=128) ");
}

TEST(Merge, RatesAreMergedThroughTheirCosts) {
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), launch_of(1, 0.3)})});
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.samples_per_s, 8 / 0.2);  // not the mean of 80 and 26.7
}

TEST(Merge, SixRepeatsHaveAnIntervalOfTheirOwn) {
  std::vector<Record> records;
  for (int64_t repeat = 0; repeat < 6; ++repeat)
    records.push_back(launch_of(repeat, 0.1 + 0.01 * static_cast<double>(repeat)));
  const auto points = merge_repeats({study_of(records)});
  EXPECT_DOUBLE_EQ(points[0].measures.step_low_s, 0.1);  // order statistics 1 and 6
  EXPECT_DOUBLE_EQ(points[0].measures.step_high_s, 0.15);
}

TEST(Merge, StudiesOfOneMachineJoinAndOthersStayApart) {
  StudyData first = study_of({launch_of(0, 0.1)}), second = first, other = first;
  other.environment.devices = {"Another CPU"};
  EXPECT_EQ(merge_repeats({first, second}).size(), 1u);
  EXPECT_EQ(merge_repeats({first, second})[0].repeats, 2);
  EXPECT_EQ(merge_repeats({first, second, other}).size(), 2u);
}

TEST(Merge, HowLongAndHowWrittenDoesNotMatterButTheWorkDoes) {
  Record longer = launch_of(0, 0.1), strong = launch_of(0, 0.1), seed = launch_of(0, 0.1),
         accumulated = launch_of(0, 0.1), shard = training_record("fsdp", 2, 4, 0.1),
         gradients = training_record("fsdp(shard=gradients)", 2, 4, 0.1);
  longer.point.sampling.max_steps = 1000;
  strong.point.training.scaling = "strong";
  seed.point.seed = 2;
  accumulated.point.training.accumulation = 2;
  const auto points =
      merge_repeats({study_of({launch_of(0, 0.1), longer, strong, seed, accumulated, shard, gradients})});
  ASSERT_EQ(points.size(), 5u);
  int64_t repeats = 0;
  for (const MergedPoint& merged : points) repeats = std::max(repeats, merged.repeats);
  EXPECT_EQ(repeats, 3);
}

TEST(Merge, OnlyOkPointsAreMeasured) {
  Record failed = launch_of(0, 0.1);
  failed.outcome = Outcome::wrong;
  const StudyData study = study_of({failed, launch_of(1, 0.2)});
  const auto points = merge_repeats({study});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_EQ(cell(not_ok_table({study}), 0, "outcome").text, "wrong");
}

// Points that lacked different amounts of memory share a row for each power of two.
TEST(Merge, OutOfMemoryByPowersOfTwo) {
  std::vector<Record> records;
  for (const char* wanted : {"70.3 MiB", "100 MiB", "1.50 GiB"}) {
    records.push_back(launch_of(std::ssize(records), 0.1));
    records.back().outcome = Outcome::out_of_memory;
    records.back().reason =
        std::string("out of memory: ") + wanted + " wanted, the limit of a rank is 64.0 MiB";
  }
  const Table table = not_ok_table({study_of(records)});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, 0, "reason").text,
            "out of memory: 1.00 GiB to 2.00 GiB wanted, the limit of a rank is 64.0 MiB");
  EXPECT_EQ(cell(table, 1, "reason").text,
            "out of memory: 64.0 MiB to 128 MiB wanted, the limit of a rank is 64.0 MiB");
  EXPECT_EQ(cell(table, 1, "points").text, "2");
}

TEST(Merge, OneUnreliableRepeatMakesThePointUnreliable) {
  Record unreliable = launch_of(1, 0.1);
  unreliable.measures.verified = "unverified: too large";
  unreliable.measures.oversubscribed = true;
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), unreliable, launch_of(2, 0.1)})});
  EXPECT_EQ(points[0].measures.verified, "unverified: too large");
  EXPECT_TRUE(points[0].measures.oversubscribed);
}

}  // namespace
}  // namespace shardmark

// Tests the table of the load of the experts in a mixture-of-experts model, with a series made by hand.
#include <gmock/gmock.h>

#include "analysis/tables/tables.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record loaded(std::vector<double> tokens) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.samples.push_back({"expert_load", 2, 4, std::move(tokens)});
  return record;
}

TEST(Experts, AreARowForEachLayerOfEachPoint) {
  Record again = loaded({30, 10, 0, 0, 10, 10, 10, 10});
  again.point.repeat = 1;
  again.id = point_id(again.point);
  const std::vector<StudyData> studies = {study_of({loaded({10, 30, 0, 0, 10, 10, 10, 10}), again})};
  const auto points = merge_repeats(studies);
  const Table table = experts_table(points);
  ASSERT_EQ(table.rows.size(), 2u);
  const auto number = [&](size_t row, const char* column) {
    return cell(table, row, column).value.get<double>();
  };
  EXPECT_EQ(number(0, "mean"), 10);
  EXPECT_EQ(number(0, "largest"), 20);  // the means over the repeats are 20, 20, 0 and 0
  EXPECT_EQ(number(0, "largest / mean"), 2);
  EXPECT_EQ(number(0, "idle"), 2);
  EXPECT_EQ(number(1, "largest / mean"), 1);
  EXPECT_EQ(number(1, "idle"), 0);
}

TEST(Experts, OfOtherModelsAreNoTable) {
  const std::vector<StudyData> studies = {study_of({training_record("ddp", 2, 4, 0.1)})};
  EXPECT_TRUE(experts_table(merge_repeats(studies)).rows.empty());
}

// A damaged study may hold loads without experts, or of other numbers of layers and experts in a repeat.
TEST(Experts, DamagedLoadsAreLeftOut) {
  Record none = training_record("ddp", 2, 4, 0.1);
  none.samples.push_back({"expert_load", 1, 0, {}});
  const std::vector<StudyData> empty = {study_of({none})};
  EXPECT_TRUE(experts_table(merge_repeats(empty)).rows.empty());
  Record other = training_record("ddp", 2, 4, 0.1);
  other.samples.push_back({"expert_load", 1, 2, {1, 1}});
  other.point.repeat = 1;
  other.id = point_id(other.point);
  const std::vector<StudyData> unlike = {study_of({loaded({10, 30, 0, 0, 10, 10, 10, 10}), other})};
  EXPECT_EQ(experts_table(merge_repeats(unlike)).rows.size(), 2U);
}

}  // namespace
}  // namespace shardmark

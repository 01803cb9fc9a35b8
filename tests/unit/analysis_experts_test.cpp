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

// Two ranks with four samples each, of ten tokens that go to one expert: 80 copies in a layer. With experts
// over two ranks, a rank has two of the four.
TEST(Experts, SayWhatWasDroppedAndWhichRankIsBusiest) {
  Record record = loaded({10, 30, 0, 0, 20, 20, 20, 20});
  record.point.training.expert = 2;
  record.point.training.model =
      choice_from_text("moe(layers=2, sequence=10, experts=4, top_k=1, capacity=1, routing=zipf)");
  const std::vector<StudyData> studies = {study_of({record})};
  const Table table = experts_table(merge_repeats(studies));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, 0, "dropped").value.get<double>(), 50);
  EXPECT_EQ(cell(table, 1, "dropped").value.get<double>(), 0);
  EXPECT_EQ(cell(table, 0, "busiest rank / mean").value.get<double>(), 2);
  EXPECT_EQ(cell(table, 1, "busiest rank / mean").value.get<double>(), 1);
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
  const Table table = experts_table(merge_repeats(unlike)),
              alone = experts_table(merge_repeats({study_of({loaded({10, 30, 0, 0, 10, 10, 10, 10})})}));
  ASSERT_EQ(table.rows.size(), 2U);
  for (size_t row = 0; row < 2; ++row)
    EXPECT_EQ(cell(table, row, "mean").text, cell(alone, row, "mean").text) << "a mean over what is there";
}

}  // namespace
}  // namespace shardmark

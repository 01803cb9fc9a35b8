// Tests the order of actions in pipeline schedules: it equals PyTorch's, works for any layout, and adds
// gradients in the order of the micro-batches.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "pipeline_testing.h"

namespace shardmark::strategies {
namespace {

constexpr char kTorchPasses[] = {'F', 'B', 'I', 'W'};  // in the order of Pass

std::string in_torch_words(const PipelineOrder& order, const Stage& stage) {
  std::string text;
  for (const PipelineAction& action : order)
    text += (text.empty() ? "" : " ") + std::to_string(stage.part(action.chunk)) +
            kTorchPasses[static_cast<int>(action.pass)] + std::to_string(action.micro_batch);
  return text;
}

// The orders are exactly those of PyTorch. PyTorch's GPipe also begins backward with micro-batch 0, while the
// paper begins with the last one. The files lack what PyTorch refuses: interleaved and zero-bubble schedules
// whose number of micro-batches cannot be divided into equal rounds. 1F1B with fewer micro-batches than ranks
// is in the files, because PyTorch refuses it only in its constructor.
TEST(PipelineOrders, AreThoseOfTorch) {
  for (const char* name : kPipelineSchedules) {
    std::ifstream file(std::string(SHARDMARK_TEST_DATA) + "/pipeline_orders/" + name + ".csv");
    std::string line;
    std::getline(file, line);
    int num_lines = 0;
    for (; std::getline(file, line); ++num_lines) {
      std::istringstream words(line);
      int64_t micro_batches = 0;
      Stage stage{.placement = placement_of(name)};
      char comma = 0;
      words >> stage.count >> comma >> micro_batches >> comma >> stage.chunks >> comma >> stage.index >>
          comma;
      std::string order;
      std::getline(words, order);
      ASSERT_EQ(in_torch_words(pipeline_schedule(name).order(stage, micro_batches), stage), order)
          << name << ": " << line;
    }
    EXPECT_GT(num_lines, 100) << name;
  }
}

TEST(PipelineOrders, ReadLikeTheFigures) {
  const auto text = [](const char* name, const Stage& stage, int64_t micro_batches) {
    return in_torch_words(pipeline_schedule(name).order(stage, micro_batches), stage);
  };
  EXPECT_EQ(text("gpipe", {0, 1, 1}, 2), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(text("1f1b", {0, 1, 1}, 2), "0F0 0B0 0F1 0B1");
  EXPECT_EQ(text("1f1b", {1, 3, 1}, 4), "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  EXPECT_EQ(text("zero_bubble", {0, 1, 1}, 2), "0F0 0I0 0W0 0F1 0I1 0W1");
  EXPECT_EQ(text("zero_bubble", {2, 3, 1}, 4), "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3");
  const Stage there_and_back{1, 2, 2, Placement::v};
  EXPECT_EQ(text("zero_bubble_v", there_and_back, 3),
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2");
  EXPECT_EQ(text("interleaved", {1, 2, 2}, 2), "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1");
  // 5 micro-batches on 2 ranks are divided into rounds of 3 and 2.
  EXPECT_EQ(text("interleaved", {1, 2, 2}, 5),
            "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4");
}

void check_layout(const PipelineLayout& layout) {
  SCOPED_TRACE(layout.text());
  const std::vector<PipelineOrder> orders = layout.orders();
  EXPECT_EQ(wrong_between(orders, placement_of(layout.schedule)), "");
  for (int64_t index = 0; index < layout.count; ++index) {
    const Stage stage = layout.stage(index);
    EXPECT_EQ(pipeline_schedule(layout.schedule).impossible(stage, layout.micro_batches), "");
    // Gradients are added in the order of the micro-batches 0, 1, 2, ... Forward has this order, too.
    std::map<std::pair<Pass, int64_t>, int64_t> next;
    for (const PipelineAction& action : orders[static_cast<size_t>(index)])
      EXPECT_EQ((next[{action.pass, action.chunk}]++), action.micro_batch);
    for (const auto& [pass_and_chunk, done] : next) EXPECT_EQ(done, layout.micro_batches);
    const size_t num_passes = layout.schedule.starts_with("zero_bubble") ? 3 : 2;
    EXPECT_EQ(next.size(), num_passes * static_cast<size_t>(layout.chunks));
  }
}

TEST(PipelineOrders, WorkForAnyLayout) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 1000; ++trial) check_layout(random_layout(random));
}

// This includes all layouts that PyTorch refuses.
TEST(PipelineOrders, OfInterleavedWorkWhereRoundsDoNotComeOutEven) {
  for (int64_t count = 1; count <= 9; ++count)
    for (int64_t micro_batches = 1; micro_batches <= 40; ++micro_batches)
      for (int64_t chunks = 2; chunks <= 4; ++chunks)
        ASSERT_EQ(wrong_between(PipelineLayout{"interleaved", count, micro_batches, chunks}.orders()), "")
            << count << " ranks, " << micro_batches << " micro-batches, " << chunks << " chunks";
}

TEST(PipelineOrders, AreChosenByName) {
  EXPECT_THAT(pipeline_schedule_kind().names, testing::UnorderedElementsAreArray(kPipelineSchedules));
  const PipelineSchedule& interleaved = pipeline_schedule("interleaved");
  const auto chunks = [&](const std::string& choice) {
    const Choice resolved = resolve(choice_from_text(choice), interleaved.options, "pipeline schedule");
    return interleaved.chunks(resolved.options);
  };
  EXPECT_EQ(chunks("interleaved"), 2);
  EXPECT_EQ(chunks("interleaved(chunks=3)"), 3);
  EXPECT_THROW(chunks("interleaved(chunks=1)"), UsageError);
  EXPECT_EQ(pipeline_schedule("1f1b").chunks({}), 1);
  try {
    pipeline_schedule("1f1");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "unknown pipeline schedule '1f1'; known: 1f1b, gpipe, interleaved, zero_bubble, zero_bubble_v");
  }
}

}  // namespace
}  // namespace shardmark::strategies

// Compares predictions with published scaling results. The bounds are slightly wider than the errors that
// were reached.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "analysis_fixture.h"
#include "published_scaling.h"
#include "readme_block.h"
#include "specs/model_table.h"

namespace shardmark {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

const PublishedScaling& published(const std::string& name) {
  for (const PublishedScaling& each : published_scalings())
    if (each.name == name) return each;
  throw std::out_of_range(name);
}

int64_t num_parameters(const PublishedScaling& scaling) {
  const Choice& model = scaling.rows.front().point.training.model;
  return specs::model_spec(model.name).table(model.options).num_parameters();
}

// Prints the errors of all rows and returns the largest absolute one.
double worst_error(const PublishedScaling& scaling) {
  const std::vector<PredictedRow> predicted = predicted_rows(scaling);
  double worst = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const PublishedRow& row = scaling.rows[i];
    const double error = predicted[i].step_s / row.step_s - 1;
    worst = std::max(worst, std::abs(error));
    printf("%-22s %4ld ranks: measured %8.2f ms, predicted %8.2f ms, %+5.2f %%\n", scaling.name.c_str(),
           static_cast<long>(row.point.ranks), row.step_s * 1e3, predicted[i].step_s * 1e3, error * 100);
  }
  return worst;
}

TEST(Published, ModelsAreTheOnesMeasured) {
  EXPECT_EQ(num_parameters(published("GPT 125M on A100 40GB")), 125'311'488);  // NumParams in the source
  EXPECT_EQ(num_parameters(published("GPT 760M on A100 40GB")), 760'470'528);
}

TEST(Published, TheFirstRowCalibrates) {
  for (const PublishedScaling& scaling : published_scalings()) {
    const PredictedRow first = predicted_rows(scaling).front();
    EXPECT_NEAR(first.step_s, scaling.rows.front().step_s, 1e-9) << scaling.name;
  }
}

// Calibration inverts the simulation of a layout. If a copy has more ranks than micro-batches, one GPU would
// compute for longer than the whole step takes.
TEST(Published, AnyLayoutThatCalibratesEqualsWhatWasMeasured) {
  PublishedScaling links = published("Llama 3.1 8B, context parallel 2, on H100");
  std::mt19937_64 random(1);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  int num_beyond = 0;
  for (int i = 0; i < 60; ++i) {
    Point point = published_point("llama_8b(sequence=2048)", i % 2 == 0 ? "ddp" : "fsdp(shard=optimizer)",
                                  "adamw", 1, one_of({1, 2}));
    TrainingPoint& t = point.training;
    t.precision = "bf16";
    t.tensor = one_of({1, 2, 8});
    t.sequence_parallel = t.tensor > 1;
    t.context = one_of({1, 2, 8});
    t.pipeline = one_of({1, 2, 8, 16});
    t.accumulation = one_of({1, 2, 16, 64});
    point.ranks = point.ranks_per_copy() * one_of({1, 4});
    const PublishedStep step(links, point);
    const double step_s = step.with(0).step_s * 1.01 + static_cast<double>(one_of({1, 10, 100})) / 10;
    const double computing_s = step.computing_s(step_s);
    num_beyond += computing_s > step_s ? 1 : 0;
    EXPECT_NEAR(step.with(computing_s).step_s / step_s, 1, 1e-9)
        << "tensor " << t.tensor << ", context " << t.context << ", pipeline " << t.pipeline << ", "
        << t.accumulation << " micro-batches";
  }
  EXPECT_GT(num_beyond, 10);
}

// The difference of two nearly equal times is exactly 0 instead of a rounding error.
TEST(Published, ExposedCommunicationIsNoRoundingError) {
  for (const PublishedScaling& scaling : published_scalings())
    for (const PredictedRow& row : predicted_rows(scaling))
      EXPECT_TRUE(row.exposed_s == 0 || row.exposed_s > 1e-9 * row.step_s)
          << scaling.name << ": " << row.exposed_s;
}

// Communication costs more across nodes than within a node, and the exposed part is never longer than all
// operations together.
TEST(Published, LinksCost) {
  for (const PublishedScaling& scaling : published_scalings()) {
    const std::vector<PredictedRow> rows = predicted_rows(scaling);
    for (const PredictedRow& row : rows) EXPECT_LE(row.exposed_s, row.communication_s + 1e-12);
    EXPECT_GT(rows.back().exposed_s, 0) << scaling.name;
    EXPECT_GT(rows.back().communication_s, rows[rows.size() - 2].communication_s) << scaling.name;
  }
}

TEST(Published, Gpt125MOn128A100) { EXPECT_LT(worst_error(published("GPT 125M on A100 40GB")), 0.10); }
TEST(Published, Gpt760MOn128A100) { EXPECT_LT(worst_error(published("GPT 760M on A100 40GB")), 0.05); }
TEST(Published, ResNet50On16V100) { EXPECT_LT(worst_error(published("ResNet-50 on V100")), 0.07); }

TEST(Published, Llama8BOn128H100) {
  EXPECT_LT(worst_error(published("Llama 3.1 8B, eager, on H100 96GB")), 0.03);
  EXPECT_LT(worst_error(published("Llama 3.1 8B, torch.compile, on H100 96GB")), 0.03);
}

// In weak scaling the step hardly changes. So a prediction must be better than the assumption that nothing
// changes.
TEST(Published, WeakScalingIsPredictedAsTheReadmeSays) {
  const auto errors = [](const PublishedScaling& scaling, bool unchanged) {
    std::vector<double> percent;
    const std::vector<PredictedRow> predicted = predicted_rows(scaling);
    for (size_t i = 1; i < predicted.size(); ++i) {
      const double step_s = unchanged ? scaling.rows.front().step_s : predicted[i].step_s;
      percent.push_back(100 * (step_s / scaling.rows[i].step_s - 1));
    }
    return percent;
  };
  const PublishedScaling &eager = published("Llama 3.1 8B, eager, on H100 96GB"),
                         &compiled = published("Llama 3.1 8B, torch.compile, on H100 96GB"),
                         &context = published("Llama 3.1 8B, context parallel 2, on H100");
  const auto least = [](const std::vector<double>& all) {
    return -*std::min_element(all.begin(), all.end());
  };
  expect_row_of_predict_readme(
      "Llama 3.1 8B by FSDP2 (torchtitan) from 8 to 128 H100",
      fmt::format(
          "step {:.1f} % too short compiled, {:.1f} % eager; \"as long as on 8\" is {:.1f} and {:.1f} % too "
          "short",
          least(errors(compiled, false)), least(errors(eager, false)), least(errors(compiled, true)),
          least(errors(eager, true))));
  expect_row_of_predict_readme(
      "Llama 3.1 8B, two GPUs a sequence (NVIDIA), from 8 to 128 H100",
      fmt::format("step at most {:.1f} % too short; \"as long as on 8\" at most {:.1f} %",
                  least(errors(context, false)), least(errors(context, true))));
}

}  // namespace
}  // namespace shardmark

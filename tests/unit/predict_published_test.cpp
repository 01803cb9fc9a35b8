// Predictions held against scaling that others published. The bounds are what is reached, a little wider.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "analysis/predict/published_playbook.h"
#include "analysis_fixture.h"
#include "base/stats.h"
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

// The largest |error| of a row; prints all.
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
  EXPECT_EQ(num_parameters(published("GPT 125M on A100 40GB")), 125'311'488);  // the source's NumParams
  EXPECT_EQ(num_parameters(published("GPT 760M on A100 40GB")), 760'470'528);
}

TEST(Published, TheFirstRowCalibrates) {
  for (const PublishedScaling& scaling : published_scalings()) {
    const PredictedRow first = predicted_rows(scaling).front();
    EXPECT_NEAR(first.step_s, scaling.rows.front().step_s, 1e-9) << scaling.name;
  }
}

// Links add what they cost: more across nodes than within one, and never more than all operations take.
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

// Of a column's rows that hold a number.
std::vector<double> numbers_of(const Table& table, const std::string& column) {
  std::vector<double> numbers;
  for (size_t row = 0; row < table.rows.size(); ++row)
    if (const OptionValue& value = cell(table, row, column).value; value.is_number())
      numbers.push_back(value.get<double>());
  return numbers;
}

std::string right(const Table& table, const char* column) {
  int64_t right = 0, all = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    long some = 0, of = 0;
    if (sscanf(cell(table, row, column).text.c_str(), "%ld of %ld", &some, &of) == 2)
      right += some, all += of;
  }
  return fmt::format("{} of {}", right, all);
}

// analysis/predict/README.md's figures.
TEST(Published, LayoutsAreRankedAsTheReadmeSays) {
  const PlaybookRow& first = playbook_rows().front();
  const specs::ModelTable table_1b =
      specs::model_spec(first.point.training.model.name).table(first.point.training.model.options);
  const double tokens_per_s = 256 * 4096.0 / 8 / first.step_s;  // 39,273, an MFU of 38.3 % of 989.5 TFLOP/s
  EXPECT_NEAR(table_1b.step_flops() / 4096 * tokens_per_s / 989.5e12, 0.383, 0.001);

  const std::vector<PlaybookPrediction> predictions = playbook_predictions();
  EXPECT_EQ(predictions.size(), 1591u);
  const Table table = published_layouts_table(predictions);
  std::vector<double> loss = numbers_of(table, "loss");
  EXPECT_EQ(loss.size(), 13u);
  EXPECT_EQ(fmt::format("{:.1f} {:.0f}", median(loss), quantile(loss, 1)), "3.6 85");
  const std::vector<double> rank = numbers_of(table, "rank correlation");
  EXPECT_EQ(fmt::format("{:.2f} {:.2f} {:.2f}", quantile(rank, 0), median(rank), quantile(rank, 1)),
            "0.45 0.69 0.92");
  EXPECT_EQ(right(table, "predicted right ran"), "1019 of 1035");
  EXPECT_EQ(right(table, "predicted right did not run"), "386 of 556");

  std::vector<double> steps, memory;
  for (const PlaybookPrediction& one : predictions) {
    if (!one.row->ran()) continue;
    if (one.row->nodes <= 4) steps.push_back(100 * (one.step_s / one.row->step_s - 1));
    memory.push_back(100 * std::abs(one.memory_bytes / one.row->memory_bytes - 1));
  }
  EXPECT_EQ(fmt::format("{:.0f} {:.0f}", median(steps), median(memory)), "-7 10");
}

}  // namespace
}  // namespace shardmark

// Predictions held against scaling that others published. The bounds are what is reached, a little wider.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "analysis/predict/published_scaling.h"
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

std::vector<PublishedScaling> predicted_scalings() {
  std::vector<PublishedScaling> all = published_scalings();
  std::erase_if(all, [](const PublishedScaling& each) { return !each.unpredicted.empty(); });
  return all;
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
  // The playbook says tokens/s and MFU of 989.5 TFLOP/s: 39,273 and 38.3 %; 16,341 and 42.4 %.
  const auto flops_of_token = [](const char* name) {
    const Choice& model = published(name).rows.front().point.training.model;
    const specs::ModelTable table = specs::model_spec(model.name).table(model.options);
    return table.step_flops() / static_cast<double>(table.sample.tokens());
  };
  EXPECT_NEAR(flops_of_token("Llama 1B, micro-batch 1, on H100") * 39273 / 989.5e12, 0.383, 0.001);
  EXPECT_NEAR(flops_of_token("Llama 3B, micro-batch 1, on H100") * 16341 / 989.5e12, 0.424, 0.001);
}

TEST(Published, TheFirstRowCalibrates) {
  for (const PublishedScaling& scaling : predicted_scalings()) {
    const PredictedRow first = predicted_rows(scaling).front();
    EXPECT_NEAR(first.step_s, scaling.rows.front().step_s, 1e-9) << scaling.name;
  }
}

// Links add what they cost: more across nodes than within one, and never more than all operations take.
TEST(Published, LinksCost) {
  for (const PublishedScaling& scaling : predicted_scalings()) {
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

// README.md's figures.
TEST(Published, LayoutsAreRankedAsTheReadmeSays) {
  const Table table = published_layouts_table();
  const std::vector<double> loss = numbers_of(table, "loss"), worst = numbers_of(table, "worst");
  ASSERT_EQ(loss.size(), 9u);
  EXPECT_EQ(std::count(loss.begin(), loss.end(), 0), 5);
  EXPECT_EQ(fmt::format("{:.1f} {:.1f}", mean(loss), quantile(loss, 1)), "1.1 3.7");
  EXPECT_EQ(fmt::format("{:.0f} {:.0f}", mean(worst), quantile(worst, 1)), "19 95");
  EXPECT_THAT(numbers_of(table, "rank correlation"),
              ElementsAre(1, 1, DoubleNear(-0.6, 0.01), DoubleNear(0.8, 0.01)));
}

TEST(Published, LlamaStepsAreOffAsTheReadmeSays) {
  std::map<int64_t, std::vector<double>> errors;  // by ranks, in percent
  for (const PublishedScaling& scaling : published_scalings()) {
    if (scaling.job.empty()) continue;
    const std::vector<PredictedRow> predicted = predicted_rows(scaling);
    for (size_t i = 1; i < predicted.size(); ++i)
      errors[scaling.rows[i].point.ranks].push_back(100 * (predicted[i].step_s / scaling.rows[i].step_s - 1));
  }
  const auto range = [&](int64_t ranks) {
    return fmt::format("{:.0f} to {:.0f}", quantile(errors.at(ranks), 0), quantile(errors.at(ranks), 1));
  };
  EXPECT_EQ(range(16), "-4 to 3");
  EXPECT_EQ(range(128), "-42 to -32");
  EXPECT_EQ(range(256), "-68 to -57");
}

TEST(Published, MemoryIsOffAsTheReadmeSays) {
  const std::vector<double> errors = numbers_of(published_table(), "memory error");
  ASSERT_EQ(errors.size(), 29u);
  EXPECT_EQ(fmt::format("{:.0f} {:.0f} {:.0f}", quantile(errors, 0), median(errors), quantile(errors, 1)),
            "-34 -20 -10");
  const Table table = published_layouts_table();
  const auto right = [&](const char* column) {
    int64_t right = 0, all = 0;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      long some = 0, of = 0;
      if (sscanf(cell(table, row, column).text.c_str(), "%ld of %ld", &some, &of) == 2)
        right += some, all += of;
    }
    return fmt::format("{} of {}", right, all);
  };
  EXPECT_EQ(right("predicted right ran"), "29 of 29");
  EXPECT_EQ(right("predicted right did not run"), "17 of 25");
}

}  // namespace
}  // namespace shardmark

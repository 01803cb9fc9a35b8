// Predictions held against scaling that others published. The bounds are what is reached, a little wider.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "analysis/predict/published_scaling.h"
#include "specs/model_table.h"

namespace shardmark {
namespace {

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

}  // namespace
}  // namespace shardmark

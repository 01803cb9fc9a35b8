// Compares predictions with the layouts that the playbook measured, and recomputes the figures of
// analysis/predict/README.md.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stats.h"
#include "base/units.h"
#include "playbook_fixture.h"
#include "published_playbook.h"
#include "readme_block.h"
#include "specs/model_table.h"

namespace shardmark {
namespace {

// Spearman's, of the predicted and the measured steps of a job.
double rank_correlation(Job job) {
  std::stable_sort(job.begin(), job.end(), [](const auto& a, const auto& b) { return a.step_s < b.step_s; });
  std::vector<double> measured;
  for (const PlaybookPrediction& one : job) measured.push_back(one.row->step_s);
  return drift(measured);
}

// "3 of 5" layouts that ran, or that did not, of which the prediction says so: they fit into 80 GiB, or do
// not.
std::string predicted_right(const std::vector<PlaybookPrediction>& predictions, bool ran) {
  constexpr double kGpuBytes = 80 * 0x1p30;  // of an H100 80GB
  int64_t right = 0, all = 0;
  for (const PlaybookPrediction& one : predictions)
    if (one.row->ran() == ran) ++all, right += (one.memory_bytes <= kGpuBytes) == ran ? 1 : 0;
  return fmt::format("{} of {}", right, all);
}

double error_in_percent(const PlaybookPrediction& one) { return 100 * (one.step_s / one.row->step_s - 1); }

// Returns the errors of all predictions for layouts that ran and for which `which` holds.
template <class Which>
std::vector<double> errors_where(const std::vector<PlaybookPrediction>& predictions, const Which& which) {
  std::vector<double> errors;
  for (const PlaybookPrediction& one : predictions)
    if (one.row->ran() && which(one)) errors.push_back(error_in_percent(one));
  return errors;
}

double median_size(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return median(std::move(errors));
}

TEST(Playbook, StepsOfThePlaybookAreOfTheirOwnBatch) {
  const PlaybookRow& first = playbook_rows().front();
  const specs::ModelTable table_1b =
      specs::model_spec(first.point.training.model.name).table(first.point.training.model.options);
  const double tokens_per_s =
      256 * 4096.0 / 8 / first.step_s;  // 39,273 tokens/s, an MFU of 38.3 % of 989.5 TFLOP/s
  EXPECT_NEAR(table_1b.step_flops() / 4096 * tokens_per_s / 989.5e12, 0.383, 0.001);

  // The model with 1B parameters on one node, with pipeline 4 and 4 micro-batches of 2 samples on 2 copies,
  // has 16 sequences per step at 21,650 tokens/s per GPU.
  const auto small = std::find_if(playbook_rows().begin(), playbook_rows().end(),
                                  [](const PlaybookRow& row) { return row.point.global_batch() == 16; });
  ASSERT_NE(small, playbook_rows().end());
  EXPECT_NEAR(small->step_s, 16 * 4096.0 / 8 / 21650, 1e-9);
  for (const PlaybookPrediction& one : all_predictions())
    EXPECT_EQ(one.row->point.global_batch(), kPlaybookBatch);
}

// Recomputes the figures about the playbook in analysis/predict/README.md.
TEST(Playbook, LayoutsAreRankedAsTheReadmeSays) {
  const std::vector<PlaybookPrediction>& predictions = all_predictions();
  const auto others = std::count_if(playbook_rows().begin(), playbook_rows().end(), [](const auto& row) {
    return row.point.global_batch() != kPlaybookBatch;
  });
  EXPECT_THAT(predict_readme(),
              testing::HasSubstr(fmt::format("{} of them have another global batch", others)));
  EXPECT_THAT(predict_readme(),
              testing::HasSubstr("The " + format_count(static_cast<double>(predictions.size())) +
                                 " rows on several nodes with no more stages than blocks"));

  const auto jobs = jobs_of(predictions);
  std::vector<double> ours, rules, sizes, few_nodes, many_nodes, rank;
  for (const auto& [key, job] : jobs) {
    ours.push_back(loss_in_percent(job, by_step));
    rules.push_back(loss_in_percent(job, by_rule));
    rank.push_back(rank_correlation(job));
    sizes.push_back(static_cast<double>(job.size()));
    (key.second <= 8 ? few_nodes : many_nodes).push_back(ours.back());
  }
  expect_row_of_predict_readme(
      fmt::format(
          "tokens/s that our first choice loses against the best measured, {} sets of {:.0f} to {:.0f} "
          "layouts that ran",
          jobs.size(), quantile(sizes, 0), quantile(sizes, 1)),
      fmt::format("mean {:.1f} %, median {:.1f} %; on 2 to 8 nodes mean {:.1f} %, median {:.1f} %; {:.0f} "
                  "to {:.0f} % on 16 to 64 nodes",
                  mean(ours), median(ours), mean(few_nodes), median(few_nodes), quantile(many_nodes, 0),
                  quantile(many_nodes, 1)));
  expect_row_of_predict_readme(
      "the same of a rule that predicts nothing: no pipeline, the fewest tensor-parallel ranks, ZeRO stage "
      "1, the "
      "largest micro-batch that ran",
      fmt::format("mean {:.1f} %, median {:.1f} %: on these sets no worse than our first choice", mean(rules),
                  median(rules)));
  expect_row_of_predict_readme("rank correlation (Spearman) of predicted and measured steps",
                               fmt::format("median {:.2f}, from {:.2f} to {:.2f}", median(rank),
                                           quantile(rank, 0), quantile(rank, 1)));

  const auto on_nodes = [&](int64_t least, int64_t most) {
    return errors_where(predictions, [=](const PlaybookPrediction& one) {
      return least <= one.row->nodes && one.row->nodes <= most;
    });
  };
  const std::vector<double> all = on_nodes(0, 64);
  const auto within = std::count_if(all.begin(), all.end(),
                                    [](double error) { return error <= 10 && 100 / (100 + error) <= 1.1; });
  expect_row_of_predict_readme(
      "step times: median of predicted / measured - 1, of the rows that ran",
      fmt::format(
          "{:.0f} % on 2 and 4 nodes, where the median of absolute errors is {:.0f} %; {:.0f} % on 8, {:.0f} "
          "% on 16, {:.0f} % on 32, {:.0f} % on 64 nodes; {:.0f} % of all rows are within a factor of 1.1",
          median(on_nodes(2, 4)), median_size(on_nodes(2, 4)), median(on_nodes(8, 8)),
          median(on_nodes(16, 16)), median(on_nodes(32, 32)), median(on_nodes(64, 64)),
          100.0 * static_cast<double>(within) / static_cast<double>(all.size())));

  std::map<std::string, int> twice;
  for (const PlaybookPrediction& one : predictions) {
    const TrainingPoint& t = one.row->point.training;
    if (!one.row->ran() || one.row->step_s <= 2 * one.step_s) continue;
    ++twice["all"];
    ++twice[one.row->nodes == 64       ? "64 nodes"
            : t.pipeline == 1          ? "no pipeline"
            : t.strategy.name == "ddp" ? "pipeline, ZeRO 0"
                                       : "pipeline, ZeRO 1"];
  }
  expect_row_of_predict_readme(
      "steps that took more than twice as long as predicted",
      fmt::format(
          "{} of {} rows: {} on 64 nodes; of the others {} pipelines under ZeRO stage 1, {} pipelines under "
          "stage 0, {} without a pipeline",
          twice["all"], format_count(static_cast<double>(all.size())), twice["64 nodes"],
          twice["pipeline, ZeRO 1"], twice["pipeline, ZeRO 0"], twice["no pipeline"]));
  const auto times_longer = [&](int64_t tensor) {
    const double error = median(errors_where(predictions, [=](const PlaybookPrediction& one) {
      const TrainingPoint& t = one.row->point.training;
      return t.pipeline == 1 && t.tensor == tensor;
    }));
    return 1 / (1 + error / 100);
  };
  expect_row_of_predict_readme(
      "tensor parallelism across nodes, without a pipeline",
      fmt::format("steps took {:.1f} times as long as predicted with tensor 16, {:.1f} times with "
                  "tensor 32 (medians)",
                  times_longer(16), times_longer(32)));

  std::vector<double> memory;
  for (const PlaybookPrediction& one : predictions)
    if (one.row->ran()) memory.push_back(100 * std::abs(one.memory_bytes / one.row->memory_bytes - 1));
  expect_row_of_predict_readme("memory", fmt::format("median of absolute errors {:.1f} %", median(memory)));
  expect_row_of_predict_readme(
      "does it fit into 80 GiB?",
      fmt::format("{} that ran, {} that did not finish (why is not said; on 16 nodes and more most of these "
                  "would fit)",
                  predicted_right(predictions, true), predicted_right(predictions, false)));
}

}  // namespace
}  // namespace shardmark

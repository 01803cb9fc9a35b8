// Rows, their calibration and their prediction.
#include "analysis/predict/published_playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "analysis/assets.h"
#include "analysis/csv_rows.h"
#include "base/error.h"
#include "base/stats.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr int64_t kPlaybookGpus = 8, kSequence = 4096;

// The models of the playbook's script (huggingface/nanotron, scripts/scaling_benchmarks.py, 0e0a27e): as many
// heads of keys and values as of queries, 131,072 words.
struct Shape {
  const char* name;
  const char* options;
};
constexpr Shape kShapes[] = {{"1B", "layers=16, width=2048, heads=32, kv_heads=32, inner=8192, tied=true"},
                             {"3B", "layers=28, width=3072, heads=32, kv_heads=32, inner=8192, tied=true"},
                             {"8B", "layers=32, width=4096, heads=32, kv_heads=32, inner=14336, tied=false"}};

// model,nodes,tensor,pipeline,micro_batch,micro_batches,zero,tokens_per_s,memory_gib
PlaybookRow playbook_row(const std::vector<std::string>& words) {
  const auto number = [&](size_t column) { return std::strtoll(words[column].c_str(), nullptr, 10); };
  const auto measured = [&](size_t column) {
    return column < words.size() && !words[column].empty() ? std::stod(words[column]) : Measures::kNone;
  };
  const auto shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                  [&](const Shape& one) { return words[0] == one.name; });
  ENSURE(words.size() >= 7 && shape != std::end(kShapes), "a row of the playbook");
  PlaybookRow row{shape->name, number(1), {}, Measures::kNone, measured(8) * 0x1p30};
  const int64_t ranks = row.nodes * kPlaybookGpus;
  row.point =
      published_point(fmt::format("llama({}, sequence={}, vocabulary=131072)", shape->options, kSequence),
                      number(6) == 0 ? "ddp" : "fsdp(shard=optimizer)", "adamw", ranks, number(4));
  TrainingPoint& t = row.point.training;
  t.precision = "bf16";
  t.reduce_dtype = "fp32";
  t.tensor = number(2);
  t.sequence_parallel = t.tensor > 1;
  t.pipeline = number(3);
  t.accumulation = number(5);
  row.step_s =
      static_cast<double>(row.point.global_batch() * kSequence) / static_cast<double>(ranks) / measured(7);
  return row;
}

PublishedScaling links() {
  return {
      "playbook", "", "", kPlaybookGpus, specs::link_from_text("nvlink4"), specs::link_from_text("ndr400"),
      {}};
}

// What rows on one node say of a model.
class Calibration {
 public:
  explicit Calibration(const std::string& model) {
    std::vector<double> ratios;
    for (const PlaybookRow& row : playbook_rows()) {
      if (row.model != model || row.nodes > 1 || !row.ran() || row.point.training.pipeline > 1) continue;
      const TrainingPoint& t = row.point.training;
      const PublishedStep step(links(), row.point);
      const double seconds = step.computing_s(row.step_s);
      const auto [found, is_new] = seconds_.try_emplace({t.tensor, t.batch_size}, seconds);
      if (!is_new) found->second = std::min(found->second, seconds);
      ratios.push_back(row.memory_bytes / step.memory_bytes());
    }
    memory_ratio_ = median(ratios);
  }

  // Of a micro-batch by the whole model on one GPU: with as many tensor-parallel ranks, or the nearest; as
  // many samples, or the nearest.
  double computing_s(const TrainingPoint& t) const {
    double nearest = std::numeric_limits<double>::infinity(), seconds = 0;
    for (const auto& [key, of_key] : seconds_) {
      const double distance =
          8 * std::abs(std::log2(static_cast<double>(key.first) / static_cast<double>(t.tensor))) +
          std::abs(std::log2(static_cast<double>(key.second) / static_cast<double>(t.batch_size)));
      if (distance >= nearest) continue;
      nearest = distance;
      seconds = of_key * static_cast<double>(t.batch_size) / static_cast<double>(key.second);
    }
    return seconds;
  }
  double memory_ratio() const { return memory_ratio_; }

 private:
  std::map<std::pair<int64_t, int64_t>, double> seconds_;  // by tensor-parallel ranks and samples
  double memory_ratio_ = 1;
};

}  // namespace

const std::vector<PlaybookRow>& playbook_rows() {
  static const std::vector<PlaybookRow> rows = [] {
    std::vector<PlaybookRow> all;
    for (const auto& words : csv_rows(playbook_csv())) all.push_back(playbook_row(words));
    return all;
  }();
  return rows;
}

std::vector<PlaybookPrediction> playbook_predictions() {
  std::map<std::string, Calibration> calibrations;
  for (const Shape& shape : kShapes) calibrations.try_emplace(shape.name, shape.name);
  std::vector<PlaybookPrediction> all;
  for (const PlaybookRow& row : playbook_rows()) {
    if (row.nodes == 1 || row.point.global_batch() != kPlaybookBatch ||
        !strategies::layout_impossible(row.point).empty())
      continue;
    const Calibration& calibration = calibrations.at(row.model);
    const PublishedStep step(links(), row.point);
    all.push_back({&row, step.with(calibration.computing_s(row.point.training)).step_s,
                   calibration.memory_ratio() * step.memory_bytes()});
  }
  return all;
}

}  // namespace shardmark

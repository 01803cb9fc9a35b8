// Rows, their calibration and their prediction.
#include "published_playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "analysis/frame/csv_rows.h"
#include "analysis/predict/shortlist.h"
#include "base/error.h"
#include "base/stats.h"
#include "schema_fixture.h"
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
      auto& of_tensor = seconds_[t.tensor];
      const auto [found, is_new] = of_tensor.try_emplace(t.batch_size, seconds);
      if (!is_new) found->second = std::min(found->second, seconds);
      ratios.push_back(row.memory_bytes / step.memory_bytes());
    }
    memory_ratio_ = median(ratios);
  }

  // How long the whole model computes a micro-batch on one GPU, by rows with as many tensor-parallel ranks,
  // or the nearest number of them. Between two measured micro-batches this is linear, beyond them in
  // proportion, as for the points of a study (compute_costs.cpp).
  double computing_s(const TrainingPoint& t) const {
    const auto distance = [&](int64_t tensor) {
      return std::abs(std::log2(static_cast<double>(tensor) / static_cast<double>(t.tensor)));
    };
    const auto& [tensor, sizes] = *std::min_element(
        seconds_.begin(), seconds_.end(),
        [&](const auto& a, const auto& b) { return distance(a.first) < distance(b.first); });
    const auto batch = static_cast<double>(t.batch_size);
    const auto above = sizes.lower_bound(t.batch_size);
    if (above == sizes.begin() || above == sizes.end()) {
      const auto& [size, seconds] = above == sizes.end() ? *sizes.rbegin() : *above;
      return seconds * batch / static_cast<double>(size);
    }
    const auto below = std::prev(above);
    const double share =
        (batch - static_cast<double>(below->first)) / static_cast<double>(above->first - below->first);
    return below->second + share * (above->second - below->second);
  }
  double memory_ratio() const { return memory_ratio_; }

 private:
  std::map<int64_t, std::map<int64_t, double>> seconds_;  // by tensor-parallel ranks, then by samples
  double memory_ratio_ = 1;
};

}  // namespace

const std::vector<PlaybookRow>& playbook_rows() {
  static const std::vector<PlaybookRow> rows = [] {
    std::vector<PlaybookRow> all;
    for (const auto& words : csv_rows(read_text(SHARDMARK_SOURCE_DIR "/tests/data/playbook.csv")))
      all.push_back(playbook_row(words));
    return all;
  }();
  return rows;
}

std::optional<Growth> playbook_growth(const std::vector<PlaybookPrediction>& predictions,
                                      const std::function<bool(int64_t nodes)>& which) {
  std::vector<GrowthRow> rows;
  for (const PlaybookPrediction& one : predictions)
    if (one.row->ran() && which(one.row->nodes)) rows.push_back(one.of_growth());
  return fit_growth(rows);
}

std::vector<PlaybookPrediction> all_playbook_predictions() {
  std::map<std::string, Calibration> calibrations;
  for (const Shape& shape : kShapes) calibrations.try_emplace(shape.name, shape.name);
  std::vector<PlaybookPrediction> all;
  for (const PlaybookRow& row : playbook_rows()) {
    if (row.point.global_batch() != kPlaybookBatch || !strategies::layout_impossible(row.point).empty())
      continue;
    const Calibration& calibration = calibrations.at(row.model);
    const PublishedStep step(links(), row.point);
    const double simulated_s = step.with(calibration.computing_s(row.point.training)).step_s;
    all.push_back({&row,
                   simulated_s,
                   calibration.memory_ratio() * step.memory_bytes(),
                   step.across(),
                   simulated_s,
                   {}});
  }
  std::map<int64_t, std::optional<Growth>> growths;  // by nodes
  for (const PlaybookPrediction& one : all) growths[one.row->nodes];
  for (auto& [nodes, growth] : growths)
    growth = playbook_growth(all, [most = nodes](int64_t other) { return other < most; });
  for (PlaybookPrediction& one : all)
    if (const auto& growth = growths[one.row->nodes]; growth && growth->is_seen()) {
      one.step_s += growth->added_s(one.row->nodes, one.across.operations).value;
      one.growth = growth;
    }
  return all;
}

PlaybookJob playbook_shortlist(const PlaybookJob& ran, size_t size) {
  std::vector<LayoutCandidate> candidates;
  for (const PlaybookPrediction& one : ran) candidates.push_back({&one.row->point, one.step_s});
  PlaybookJob listed;
  for (const size_t i : shortlist(candidates, size)) listed.push_back(ran[i]);
  return listed;
}

}  // namespace shardmark

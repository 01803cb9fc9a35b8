// 1,860 layouts of Llama models on nodes of 8 H100, as Hugging Face measured and published them
// (tests/data/playbook.csv; ultra-scale playbook, benchmarks of huggingface/nanotron): data x tensor x
// pipeline ranks, micro-batches and ZeRO stages. Rows on one node calibrate the computing and the memory,
// rows on fewer nodes the growth of a number of nodes (growth.h); all others are kept back and held against
// predictions. A few rows have another global batch than kPlaybookBatch. They are not ranked, because their
// steps do not compare.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/predict/growth.h"
#include "published_scaling.h"

namespace shardmark {

inline constexpr int64_t kPlaybookBatch = 256;  // sequences a step, of the rows that are ranked

struct PlaybookRow {
  std::string model;  // "3B"
  int64_t nodes;
  Point point;
  double step_s, memory_bytes;  // of the row's own global batch; NaN: did not finish; why is not said, mostly
                                // out of memory
  bool ran() const { return step_s > 0; }
};
const std::vector<PlaybookRow>& playbook_rows();

struct PlaybookPrediction {
  const PlaybookRow* row;
  double simulated_s, memory_bytes;
  Across across;
  double step_s;                 // simulated, and grown by what rows on fewer nodes say
  std::optional<Growth> growth;  // that they say
  GrowthRow of_growth() const { return {row->nodes, across.operations, simulated_s, row->step_s}; }
};
// Predicts every row that has a global batch of kPlaybookBatch and a possible layout.
std::vector<PlaybookPrediction> all_playbook_predictions();
// The growth that the rows on these numbers of nodes say which ran.
std::optional<Growth> playbook_growth(const std::vector<PlaybookPrediction>& predictions,
                                      const std::function<bool(int64_t nodes)>& which);

// Layouts of one model on as many nodes that ran. What of them the shortlist (shortlist.h) has, the shortest
// predicted first.
using PlaybookJob = std::vector<PlaybookPrediction>;
PlaybookJob playbook_shortlist(const PlaybookJob& ran, size_t size);

}  // namespace shardmark

// 1,860 layouts of Llama models on nodes of 8 H100, as Hugging Face measured and published them
// (playbook.csv): data x tensor x pipeline ranks, micro-batches and ZeRO stages. Rows on one node calibrate
// the computing and the memory; all others are kept back and held against predictions. A few rows have
// another global batch than kPlaybookBatch. They are not ranked, because their steps do not compare.
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/published_scaling.h"

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
  double step_s, memory_bytes;
};
// Predicts every row on several nodes that has a global batch of kPlaybookBatch and a possible layout.
std::vector<PlaybookPrediction> playbook_predictions();

// For each model and number of nodes: our first choice against the best, and what fits into a GPU.
Table published_layouts_table(const std::vector<PlaybookPrediction>& predictions);

}  // namespace shardmark

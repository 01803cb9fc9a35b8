// What a rank holds all the time, beside the ideal of 1/N of everything, and its peak.
#include <cmath>
#include <map>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

// Bytes of parameters, gradients and optimizer state if N ranks held exactly 1/N of each; NaN for a model or
// an optimizer that this program does not know.
class Ideal {
 public:
  double bytes(const Point& point) {
    const TrainingPoint& t = point.training;
    const auto [found, is_new] =
        elements_.try_emplace(to_text(t.model) + to_text(t.optimizer), Measures::kNone);
    const auto state_elements = is_new ? known_optimizer_state(t.optimizer) : std::nullopt;
    if (state_elements)
      if (const auto table = known_table(t.model))
        found->second = static_cast<double>(table->num_parameters() * (2 + *state_elements));
    const auto element_bytes = known_master_bytes(t.precision);
    if (!element_bytes) return Measures::kNone;
    return found->second * static_cast<double>(*element_bytes) / static_cast<double>(point.ranks);
  }

 private:
  std::map<std::string, double> elements_;  // by model and optimizer: a model's table is worth making once
};

std::vector<Cell> shares(const MergedPoint& merged, Ideal& ideal) {
  const Measures& m = merged.measures;
  const double share = m.parameter_bytes + m.gradient_bytes + m.optimizer_bytes;
  const double even = ideal.bytes(merged.point);
  return {cells::mebibytes(share),
          cells::mebibytes(even),
          cells::number(share / even, 3),
          cells::mebibytes(m.transient_bytes),
          cells::mebibytes(m.peak_bytes - share - m.transient_bytes),
          cells::mebibytes(m.peak_bytes)};
}

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::columns(),
                         {{"largest share", "MiB"},
                          {"ideal P/N", "MiB"},
                          {"x ideal", ""},
                          {"transient", "MiB"},
                          {"activations", "MiB"},
                          {"peak", "MiB"}}});
}

}  // namespace

Table shares_table(const MergedPoints& points) {
  Table table{"shares",
              "Memory: the share of a rank, and its peak",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  Ideal ideal;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || std::isnan(merged.measures.parameter_bytes)) continue;
    table.rows.push_back(concat<Cell>({labels.cells(merged), shares(merged, ideal)}));
  }
  table.notes = {
      "largest share: parameters, gradients and optimizer state of the rank that has most. ideal P/N: the "
      "same if each of N "
      "ranks held exactly 1/N. fsdp cuts inside tensors and comes close; zero3 deals whole tensors, and its "
      "largest tensor "
      "may outweigh 1/N; replicas (single, ddp) hold N times the ideal.",
      "peak: everything at the worst moment of a step. activations: the peak without share and transient "
      "bytes: what forward "
      "keeps for backward, the batch and working memory.",
  };
  return table;
}

}  // namespace shardmark

// What a rank holds all the time, beside the ideal of 1/N of everything, and its peak.
#include <cmath>
#include <map>

#include "analysis/known.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

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

double share_of(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return m.parameter_bytes + m.gradient_bytes + m.optimizer_bytes;
}

ColumnsOf<MergedPoint> share_columns(Ideal& ideal) {
  return {
      {{"largest share", "MiB"},
       [](const auto& merged) { return cells::mebibytes(share_of(merged)); },
       "parameters, gradients and optimizer state of the rank that has most."},
      {{"ideal P/N", "MiB"},
       [&](const auto& merged) { return cells::mebibytes(ideal.bytes(merged.point)); },
       "parameters x (2 + optimizer state elements) x element size / N: the same if each of N ranks held "
       "exactly 1/N (Rajbhandari et al., SC 2020). fsdp shards within tensors and comes close; zero3 assigns "
       "whole tensors, and its largest tensor may exceed 1/N; replicas (single, ddp) hold N times the "
       "ideal."},
      {{"x ideal", ""},
       [&](const auto& merged) { return cells::number(share_of(merged) / ideal.bytes(merged.point), 3); }},
      {{"transient", "MiB"}, mebibytes_of(&Measures::transient_bytes)},
      {{"activations", "MiB"},
       [](const auto& merged) { return cells::mebibytes(merged.measures.activation_bytes()); },
       "the peak without share and transient bytes: what forward keeps for backward, the batch and working "
       "memory."},
      {{"peak", "MiB"}, mebibytes_of(&Measures::peak_bytes), "highest total during a step."}};
}

}  // namespace

Table shares_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Ideal ideal;
  return make_table(
      "shares", "Memory: the share of a rank, and its peak", join(labels.columns(), share_columns(ideal)),
      training_points(points,
                      [](const auto& merged) { return !std::isnan(merged.measures.parameter_bytes); }));
}

}  // namespace shardmark

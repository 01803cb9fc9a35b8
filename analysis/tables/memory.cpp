// Memory of the rank whose peak is highest against what is predicted for it.
#include <cmath>
#include <map>

#include "analysis/frame/known.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

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

ColumnsOf<MergedPoint> columns(Ideal& ideal) {
  const ColumnsOf<MergedPoint> of_ideal = {
      {{"x P/N", ""},
       [&](const auto& merged) { return cells::number(share_of(merged) / ideal.bytes(merged.point), 3); },
       "parameters, gradients and optimizer state of the rank whose peak is highest / (parameters x (2 + "
       "optimizer state elements) x element size / N): 1 if each of N ranks held exactly 1/N (Rajbhandari et "
       "al., SC 2020). fsdp shards within tensors and comes close; zero3 assigns whole tensors, and its "
       "largest tensor may exceed 1/N; replicas (single, ddp) are at N."}};
  return join(columns_of({{"parameter_bytes", "parameters"},
                          {"parameter_error", "parameters"},
                          {"gradient_bytes", "gradients"},
                          {"gradient_error", "gradients"},
                          {"optimizer_bytes", "optimizer state"},
                          {"optimizer_error", "optimizer state"},
                          {"transient_bytes", "transient"},
                          {"transient_error", "transient"},
                          {"activation_bytes", "activations"},
                          {"activation_error", "activations"}}),
              of_ideal, columns_of({{"peak_bytes", "peak", "measured"}, {"peak_error", "peak"}}));
}

}  // namespace

Table memory_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Ideal ideal;
  Table table = make_table(
      "memory", "Memory: measured against predicted", join(labels.columns(), columns(ideal)),
      training_points(points,
                      [](const auto& merged) { return !std::isnan(merged.measures.parameter_bytes); }));
  table.explanations.emplace_back(
      "parameters, gradients, optimizer state: what a rank holds all the time. transient: the strategy's "
      "buffers (slots) for gathered parameters and for gradients being reduced. activations: the peak of a "
      "step without these: what forward keeps for backward, the batch, working memory of a block. Buffers "
      "inside the transport are not counted, neither ours nor those of MPI and NCCL.");
  return table;
}

}  // namespace shardmark

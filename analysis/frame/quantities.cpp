#include "analysis/frame/quantities.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "analysis/frame/layouts.h"
#include "base/error.h"
#include "schema/fields.h"

namespace shardmark {
namespace {

using Show = Quantity::Show;

// How a measure is shown whose unit in the study is this.
struct ShownUnit {
  std::string_view stored;
  const char* unit;
  Show show;
};
constexpr ShownUnit kShownUnits[] = {{"s", "ms", Show::milliseconds},
                                     {"bytes", "MiB", Show::mebibytes},
                                     {"bytes/step", "MB", Show::megabytes},
                                     {"FLOP", "GFLOP", Show::billions}};

std::string definition_of(std::string_view measure) {
  const auto* const row = std::find_if(std::begin(kMeasures), std::end(kMeasures),
                                       [&](const MeasureRow& one) { return one.name == measure; });
  return std::string(row->description) + ".";
}

// Makes a quantity of a stored measure: its heading, unit and meaning come from the table of measures, so a
// new measure needs no line here. Returns nothing for a measure that is a text.
std::optional<Quantity> quantity_of(const MeasureRow& row) {
  return std::visit(
      [&](auto member) -> std::optional<Quantity> {
        using Value = std::decay_t<decltype(Measures().*member)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return std::nullopt;
        } else {
          Quantity quantity{
              row.name,
              row.heading == nullptr ? row.name : row.heading,
              row.unit,
              std::is_same_v<Value, int64_t> ? Show::count : Show::number,
              [member](const MergedPoint& merged) { return static_cast<double>(merged.measures.*member); },
              definition_of(row.name)};
          std::replace(quantity.heading.begin(), quantity.heading.end(), '_', ' ');
          for (const auto& [stored, unit, show] : kShownUnits)
            if (stored == row.unit) quantity.unit = unit, quantity.show = show;
          return quantity;
        }
      },
      row.member);
}

template <double Measures::*measure>
double of(const MergedPoint& merged) {
  return merged.measures.*measure;
}

template <double Measures::*part>
double share_of_step(const MergedPoint& merged) {
  return merged.measures.*part / merged.measures.step_s;
}

double activation_memory(const MergedPoint& merged) { return merged.measures.activation_bytes(); }
double predicted_peak_memory(const MergedPoint& merged) { return merged.measures.predicted_peak_bytes(); }

// The sum of the parts that are known. Without the last part, the first step, it would be no time to the
// first step.
double start_time(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  double sum_s = 0;
  for (const double part : {m.launcher_s, m.program_s, m.mpi_s, m.communicators_s, m.model_s, m.first_step_s})
    if (!std::isnan(part)) sum_s += part;
  return std::isnan(m.first_step_s) ? Measures::kNone : sum_s;
}

constexpr const char* kOffPrediction =
    "measured / predicted - 1, both of that rank. Predicted by the formula of the strategy's paper, without "
    "padding; by the rank's program where a copy of the model is laid out over several ranks; activations "
    "by the model's table.";

// What follows from several measures, or is shown in another way.
std::vector<Quantity> derived() {
  return {
      {"exposed_share", "exposed", "%", Show::percent, share_of_step<&Measures::exposed_s>,
       definition_of("exposed_time")},
      {"computing", "computing", "ms", Show::milliseconds,
       [](const MergedPoint& merged) { return merged.measures.step_s - merged.measures.exposed_s; }, ""},
      {"exposed_data_time", "data", "ms", Show::milliseconds,
       [](const MergedPoint& merged) { return exposed_data_s(merged.measures); }, ""},
      {"exposed_data_share", "data", "% of step", Show::percent,
       [](const MergedPoint& merged) { return exposed_data_s(merged.measures) / merged.measures.step_s; },
       "exposed communication with ranks that have the same part of the model: gradients, parameters."},
      {"exposed_tensor_share", "tensor", "% of step", Show::percent,
       share_of_step<&Measures::exposed_tensor_s>, "with ranks that share the same blocks."},
      {"exposed_context_share", "context", "% of step", Show::percent,
       share_of_step<&Measures::exposed_context_s>, "with ranks that share the same sequences."},
      {"exposed_expert_share", "expert", "% of step", Show::percent,
       share_of_step<&Measures::exposed_expert_s>, "with ranks that share the same experts."},
      {"exposed_pipeline_share", "stages", "% of step", Show::percent,
       share_of_step<&Measures::exposed_pipeline_s>,
       "of a pipeline: its bubble, and messages that nothing hides."},
      {"of_matmul", "of matmul", "%", Show::percent,
       [](const MergedPoint& merged) { return merged.of_matmul; },
       "model FLOPs per rank and step, with half of attention's (a causal kernel computes no more), / step "
       "time / the FLOP/s that a large matrix product reaches on a rank's device: the best of all starts of "
       "the study. Not given above 100 %."},
      {"predicted_peak_bytes", "predicted", "MiB", Show::mebibytes, predicted_peak_memory,
       "parameters, gradients, optimizer state, slots and activations together, on the rank that needs "
       "most."},
      {"peak_error", "error", "%", Show::difference, of<&Measures::peak_bytes>,
       "measured / predicted - 1, predicted: all five together.", predicted_peak_memory},
      {"parameter_error", "error", "%", Show::difference, of<&Measures::parameter_bytes>, kOffPrediction,
       of<&Measures::predicted_parameter_bytes>},
      {"gradient_error", "error", "%", Show::difference, of<&Measures::gradient_bytes>, kOffPrediction,
       of<&Measures::predicted_gradient_bytes>},
      {"optimizer_error", "error", "%", Show::difference, of<&Measures::optimizer_bytes>, kOffPrediction,
       of<&Measures::predicted_optimizer_bytes>},
      {"transient_error", "error", "%", Show::difference, of<&Measures::transient_bytes>, kOffPrediction,
       of<&Measures::predicted_transient_bytes>},
      {"activation_bytes", "measured", "MiB", Show::mebibytes, activation_memory,
       "on the rank whose peak is highest."},
      {"activation_error", "error", "%", Show::difference, activation_memory, kOffPrediction,
       of<&Measures::predicted_activation_bytes>},
      {"program_bytes", "state and slots", "MiB", Show::mebibytes,
       [](const MergedPoint& merged) { return merged.measures.program_bytes(); },
       "parameters, gradients, optimizer state and the strategy's slots."},
      {"activation_bytes_per_sample", "rest per sample", "MiB", Show::mebibytes,
       [](const MergedPoint& merged) {
         return activation_memory(merged) / static_cast<double>(merged.point.training.batch_size);
       },
       "peak without state and slots / batch: activations, the batch and working memory."},
      {"start_time", "all", "ms", Show::milliseconds, start_time,
       "the six parts together, those that are known."},
      {"traffic_error", "error", "%", Show::difference, of<&Measures::traffic_bytes>,
       "counted / predicted - 1.", of<&Measures::predicted_traffic_bytes>},
  };
}

// By name.
const std::map<std::string_view, Quantity>& quantities() {
  static const auto kAll = [] {
    std::map<std::string_view, Quantity> all;
    for (const MeasureRow& row : kMeasures)
      if (auto stored = quantity_of(row)) all.emplace(stored->name, std::move(*stored));
    for (Quantity& one : derived()) all.emplace(one.name, std::move(one));
    return all;
  }();
  return kAll;
}

}  // namespace

const Quantity& quantity(std::string_view name) {
  const auto found = quantities().find(name);
  ENSURE(found != quantities().end(), "no quantity is called " + std::string(name));
  return found->second;
}

double in_unit(const Quantity& quantity, double value) {
  switch (quantity.show) {
    case Show::milliseconds:
      return value * 1e3;
    case Show::mebibytes:
      return value / cells::kMebi;
    case Show::megabytes:
      return value / 1e6;
    case Show::billions:
      return value / 1e9;
    case Show::percent:
      return value * 100;
    default:
      return value;
  }
}

Cell cell_of(const Quantity& quantity, const MergedPoint& merged) {
  const double value = quantity.of(merged);
  switch (quantity.show) {
    case Show::count:
      return cells::count(static_cast<int64_t>(value));
    case Show::percent:
      return cells::percent(value);
    case Show::difference:
      return cells::difference(value, quantity.predicted(merged));
    default:
      return cells::number(in_unit(quantity, value));
  }
}

Column column_of(const Shown& shown) {
  const Quantity& of = quantity(shown.name);
  Column column{shown.heading.empty() ? of.heading : std::string(shown.heading), of.unit, true, shown.fold,
                std::string(shown.group)};
  column.definition = of.definition;
  return column;
}

}  // namespace shardmark

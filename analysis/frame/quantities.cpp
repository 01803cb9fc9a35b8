#include "analysis/frame/quantities.h"

#include <algorithm>
#include <string>

#include "analysis/frame/layouts.h"
#include "base/error.h"

namespace shardmark {
namespace {

using Show = Quantity::Show;

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

constexpr std::string_view kIntervalOfMedian = "95 % interval of that median, which takes 6 steps.";
constexpr std::string_view kExposed = "the part of a step during which computing waited for communication.";
constexpr std::string_view kComputing = "without waiting for communication.";
constexpr std::string_view kOfThatRank = "on the rank whose peak is highest, MiB = 2^20 bytes.";
constexpr std::string_view kOffPrediction =
    "measured / predicted - 1, both of that rank. Predicted by the formula of the strategy's paper, without "
    "padding; by the rank's program where a copy of the model is laid out over several ranks; activations "
    "by the model's table.";

constexpr Quantity kQuantities[] = {
    // The step, and its parts.
    {"step", "step", "ms", Show::milliseconds, of<&Measures::step_s>,
     "median over the steps, of the slowest rank's time."},
    {"step_low", "low", "ms", Show::milliseconds, of<&Measures::step_low_s>, kIntervalOfMedian},
    {"step_high", "high", "ms", Show::milliseconds, of<&Measures::step_high_s>, kIntervalOfMedian},
    {"data", "data", "ms", Show::milliseconds, of<&Measures::data_s>,
     "waiting for the batch. Each phase is the median over the steps, on the rank that was slowest in that "
     "step."},
    {"forward", "forward", "ms", Show::milliseconds, of<&Measures::forward_s>, kComputing},
    {"backward", "backward", "ms", Show::milliseconds, of<&Measures::backward_s>, kComputing},
    {"optimizer", "optimizer", "ms", Show::milliseconds, of<&Measures::optimizer_s>, ""},
    {"exposed", "exposed", "ms", Show::milliseconds, of<&Measures::exposed_s>, kExposed},
    {"exposed_share", "exposed", "%", Show::percent, share_of_step<&Measures::exposed_s>, kExposed},
    {"computing", "computing", "ms", Show::milliseconds,
     [](const MergedPoint& merged) { return merged.measures.step_s - merged.measures.exposed_s; }, ""},
    {"exposed_data", "data", "ms", Show::milliseconds,
     [](const MergedPoint& merged) { return exposed_data_s(merged.measures); }, ""},
    {"exposed_tensor", "tensor", "ms", Show::milliseconds, of<&Measures::exposed_tensor_s>,
     "waiting for ranks that share the same blocks."},
    {"exposed_context", "context", "ms", Show::milliseconds, of<&Measures::exposed_context_s>,
     "waiting for ranks that share the same sequences."},
    {"exposed_pipeline", "stages", "ms", Show::milliseconds, of<&Measures::exposed_pipeline_s>,
     "waiting for other stages of a pipeline: its bubble, and messages that nothing hides."},
    {"exposed_data_share", "data", "% of step", Show::percent,
     [](const MergedPoint& merged) { return exposed_data_s(merged.measures) / merged.measures.step_s; },
     "exposed communication with ranks that have the same part of the model: gradients, parameters."},
    {"exposed_tensor_share", "tensor", "% of step", Show::percent, share_of_step<&Measures::exposed_tensor_s>,
     "with ranks that share the same blocks."},
    {"exposed_context_share", "context", "% of step", Show::percent,
     share_of_step<&Measures::exposed_context_s>, "with ranks that share the same sequences."},
    {"exposed_pipeline_share", "stages", "% of step", Show::percent,
     share_of_step<&Measures::exposed_pipeline_s>,
     "of a pipeline: its bubble, and messages that nothing hides."},
    {"compute_alone", "compute", "ms", Show::milliseconds, of<&Measures::compute_only_s>,
     "the step with communication disabled, measured separately: median over the steps of the slowest "
     "rank."},
    {"communication_alone", "comm.", "ms", Show::milliseconds, of<&Measures::communication_only_s>,
     "the recorded operations of the step without its computing, likewise."},
    {"energy", "energy", "J/step", Show::number, of<&Measures::energy_j>,
     "of all ranks' GPUs together, by their own counters (NVML), over the timed windows / steps."},

    // Memory of a rank.
    {"peak_memory", "peak memory", "MiB", Show::mebibytes, of<&Measures::peak_bytes>,
     "highest total during a step, on the rank that needs most."},
    {"predicted_peak_memory", "predicted", "MiB", Show::mebibytes, predicted_peak_memory, ""},
    {"peak_memory_error", "error", "%", Show::difference, of<&Measures::peak_bytes>,
     "measured / predicted - 1, predicted: all five together.", predicted_peak_memory},
    {"parameter_memory", "measured", "MiB", Show::mebibytes, of<&Measures::parameter_bytes>, kOfThatRank},
    {"parameter_memory_error", "error", "%", Show::difference, of<&Measures::parameter_bytes>, kOffPrediction,
     of<&Measures::predicted_parameter_bytes>},
    {"gradient_memory", "measured", "MiB", Show::mebibytes, of<&Measures::gradient_bytes>, kOfThatRank},
    {"gradient_memory_error", "error", "%", Show::difference, of<&Measures::gradient_bytes>, kOffPrediction,
     of<&Measures::predicted_gradient_bytes>},
    {"optimizer_memory", "measured", "MiB", Show::mebibytes, of<&Measures::optimizer_bytes>, kOfThatRank},
    {"optimizer_memory_error", "error", "%", Show::difference, of<&Measures::optimizer_bytes>, kOffPrediction,
     of<&Measures::predicted_optimizer_bytes>},
    {"transient_memory", "measured", "MiB", Show::mebibytes, of<&Measures::transient_bytes>, kOfThatRank},
    {"transient_memory_error", "error", "%", Show::difference, of<&Measures::transient_bytes>, kOffPrediction,
     of<&Measures::predicted_transient_bytes>},
    {"activation_memory", "measured", "MiB", Show::mebibytes, activation_memory, kOfThatRank},
    {"activation_memory_error", "error", "%", Show::difference, activation_memory, kOffPrediction,
     of<&Measures::predicted_activation_bytes>},
    {"program_memory", "state and slots", "MiB", Show::mebibytes,
     [](const MergedPoint& merged) { return merged.measures.program_bytes(); },
     "parameters, gradients, optimizer state and the strategy's slots."},
    {"activation_memory_per_sample", "rest per sample", "MiB", Show::mebibytes,
     [](const MergedPoint& merged) {
       return activation_memory(merged) / static_cast<double>(merged.point.training.batch_size);
     },
     "peak without state and slots / batch: activations, the batch and working memory."},
    {"offloaded_memory", "in host memory", "MiB", Show::mebibytes, of<&Measures::offloaded_bytes>, ""},

    // What moves between ranks in a step.
    {"operations", "operations", "per step", Show::count,
     [](const MergedPoint& merged) { return static_cast<double>(merged.measures.num_operations); },
     "collectives that a rank starts in a step."},
    {"traffic", "counted", "MB", Show::megabytes, of<&Measures::traffic_bytes>,
     "per rank and step: payload of each collective as it was started, times its ring factor (all-reduce "
     "2(N-1)/N; all-gather, reduce-scatter, broadcast, reduce (N-1)/N); mean over ranks, MB = 10^6 bytes "
     "(Patarasuk and Yuan, JPDC 69(2), 2009)."},
    {"predicted_traffic", "predicted", "MB", Show::megabytes, of<&Measures::predicted_traffic_bytes>,
     "by the formula of the strategy's paper, without padding."},
    {"traffic_error", "error", "%", Show::difference, of<&Measures::traffic_bytes>,
     "counted / predicted - 1.", of<&Measures::predicted_traffic_bytes>},
    {"between_nodes", "between nodes", "MB", Show::megabytes, of<&Measures::between_nodes_bytes>,
     "of those bytes, on the rank that sends most, as a hierarchical all-reduce counts them."},
};

}  // namespace

const Quantity& quantity(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                         [&](const Quantity& one) { return one.name == name; });
  ENSURE(found != std::end(kQuantities), "no quantity is called " + std::string(name));
  return *found;
}

double in_unit(const Quantity& quantity, double value) {
  switch (quantity.show) {
    case Show::milliseconds:
      return value * 1e3;
    case Show::mebibytes:
      return value / cells::kMebi;
    case Show::megabytes:
      return value / 1e6;
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
  Column column{std::string(shown.heading.empty() ? of.heading : shown.heading), std::string(of.unit), true,
                shown.fold, std::string(shown.group)};
  column.definition = of.definition;
  return column;
}

}  // namespace shardmark

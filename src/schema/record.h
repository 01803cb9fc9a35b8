// A Record is what a study keeps of one point: the point, its outcome, numbers and raw samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// The outcome of a point. `wrong` means that verification failed.
enum class Outcome { ok, skipped, out_of_memory, wrong, failed, timed_out };
std::string_view to_text(Outcome outcome);
Outcome outcome_from_text(std::string_view text);  // throws UsageError
// Whether something went wrong. A skipped point, or one that does not fit into memory, is a valid answer.
constexpr bool is_bad(Outcome outcome) {
  return outcome == Outcome::wrong || outcome == Outcome::failed || outcome == Outcome::timed_out;
}

// Raw values of one kind, a row-major matrix: rows are ranks, and columns are steps, windows or a single
// value.
struct Series {
  std::string name;  // a row of kSeries (fields.h)
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }
};

// The numbers measured for a training or collective point. fields.h gives the meaning and unit of each. NaN
// means "not measured", and is printed as "-".
struct Measures {
  static constexpr double kNone = __builtin_nan("");
  // both workloads
  double step_s = kNone, step_low_s = kNone, step_high_s = kNone;
  // There is no interval with fewer than 6 steps, nor for a mean that another program printed.
  bool has_interval() const { return step_low_s <= step_high_s; }
  // Whether steps were timed one by one but are too few for an interval of their median.
  bool has_few_steps() const { return num_steps > 0 && num_steps < 6 && !has_interval(); }
  double step_p10_s = kNone, step_p90_s = kNone, step_p99_s = kNone;
  double variation = kNone, drift = kNone;
  int64_t slowest_rank = -1;
  double slowest_share = kNone;
  int64_t num_steps = 0, num_warmup = 0;
  double energy_j = kNone;
  double preemptions_per_s = kNone;
  bool oversubscribed = false;  // such points are left out of fits
  bool unaccounted = false;
  // training
  double samples_per_s = kNone, tokens_per_s = kNone;
  // The phases of a step: for each, the median over steps of the slowest rank's time. They sum to the step.
  double data_s = kNone, forward_s = kNone, backward_s = kNone, exposed_s = kNone, optimizer_s = kNone;
  // The parts of exposed_s that wait for ranks of each dimension of the layout.
  double exposed_tensor_s = kNone, exposed_context_s = kNone, exposed_expert_s = kNone,
         exposed_pipeline_s = kNone;
  double compute_only_s = kNone, communication_only_s = kNone, probed_communication_s = kNone;
  double overlap = kNone;  // may be negative
  double flops_per_step = kNone, peak_flops = kNone;
  double datasheet_flops = kNone;  // absent for an unknown device
  double mfu = kNone;
  double loss_first = kNone, loss_last = kNone;
  int64_t num_skipped = 0;
  double gradient_norm = kNone;
  int64_t first_step = 0;
  double held_out_loss = kNone, accuracy = kNone;
  std::string verified;  // "equal to one device", "unverified: why", "wrong: why"
  double verify_error = kNone;
  // from the launch to the first step
  double launcher_s = kNone, program_s = kNone, mpi_s = kNone;
  double communicators_s = kNone, model_s = kNone, first_step_s = kNone;
  // memory of one rank
  double parameter_bytes = kNone, gradient_bytes = kNone, optimizer_bytes = kNone, transient_bytes = kNone;
  double offloaded_bytes = kNone;  // not part of the peak
  double peak_bytes = kNone, reserved_bytes = kNone, device_bytes = kNone;
  double memory_limit_bytes = kNone;
  double predicted_parameter_bytes = kNone, predicted_gradient_bytes = kNone,
         predicted_optimizer_bytes = kNone;
  double predicted_transient_bytes = kNone, predicted_offloaded_bytes = kNone;
  double predicted_activation_bytes = kNone;
  // program_bytes() is what the strategy itself holds: parameters, gradients, optimizer state and buffers.
  // activation_bytes() is all the rest at the peak of a step.
  double program_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes + transient_bytes;
  }
  double activation_bytes() const { return peak_bytes - program_bytes(); }
  double predicted_peak_bytes() const {
    return predicted_parameter_bytes + predicted_gradient_bytes + predicted_optimizer_bytes +
           predicted_transient_bytes + predicted_activation_bytes;
  }
  // traffic of one rank in one step
  double traffic_bytes = kNone, predicted_traffic_bytes = kNone, between_nodes_bytes = kNone;
  int64_t num_operations = 0;
  // checkpoints of a training point
  double checkpoint_write_s = kNone, checkpoint_stall_s = kNone, checkpoint_read_s = kNone;
  double checkpoint_bytes = kNone, predicted_checkpoint_bytes = kNone;
  int64_t num_load_units = 0;
  // what the network ports of all its nodes counted
  double network_sent_bytes = kNone, network_received_bytes = kNone;
  double network_sent_packets = kNone, network_received_packets = kNone;
  double network_retransmits = kNone, network_losses = kNone, network_congestion = kNone;
  int64_t network_idle_ports = 0;
  std::string network_ports;
  // collectives
  double algbw_gb_s = kNone, busbw_gb_s = kNone;
  int64_t num_wrong = -1;
  double estimated_s = kNone;  // by the library itself
};

struct Record {
  Point point;
  std::string id;  // point_id(point)
  Outcome outcome = Outcome::ok;
  // Why the outcome is not ok, or a remark about a point that is.
  std::string reason;
  std::string started;     // ISO 8601, UTC
  double duration_s = 0;   // the whole point, including set-up and verification
  int64_t attempts = 1;    // times it was begun: twice if a rank crashed or hung
  bool ended_job = false;  // a rank crashed or hung in the last attempt, which ended the job
  Measures measures;
  std::vector<Series> samples;

  const Series* series(std::string_view name) const;  // nullptr when absent
};

}  // namespace shardmark

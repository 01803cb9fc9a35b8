// A Record is what a study keeps of one point: the point, its outcome, numbers and raw samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// ok, skipped, out_of_memory, wrong (verification failed), failed, timed_out
enum class Outcome { ok, skipped, out_of_memory, wrong, failed, timed_out };
std::string_view to_text(Outcome outcome);
Outcome outcome_from_text(std::string_view text);  // throws UsageError
// Not as it should be: skipped points and those that do not fit into memory are answers, too.
constexpr bool is_bad(Outcome outcome) {
  return outcome == Outcome::wrong || outcome == Outcome::failed || outcome == Outcome::timed_out;
}

// Raw values of one kind, rows x columns, row-major: rows are ranks, columns are steps, windows or 1.
struct Series {
  std::string name;  // a row of kSeries (fields.h)
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }
};

// Numbers of a training or collective point; a NaN means "not measured", and prints as "-".
struct Measures {
  static constexpr double kNone = __builtin_nan("");
  // both workloads
  double step_s = kNone;      // median over steps (operations) of the maximum over ranks
  double step_low_s = kNone;  // 95 % interval of that median
  double step_high_s = kNone;
  double step_p10_s = kNone;
  double step_p90_s = kNone;
  double step_p99_s = kNone;
  double variation = kNone;   // coefficient of variation of the steps
  double drift = kNone;       // Spearman correlation of step time with step number
  int64_t slowest_rank = -1;  // the rank that was the maximum most often, and its share of the steps
  double slowest_share = kNone;
  int64_t num_steps = 0;  // timed
  int64_t num_warmup = 0;
  double energy_j = kNone;      // of all ranks' devices, per step (operation)
  bool oversubscribed = false;  // more ranks than cores, or several ranks on a GPU: never fitted
  bool unaccounted = false;     // durations of a rank did not add up to its window's wall time within 1 %
  // training
  double samples_per_s =
      kNone;  // samples (images or sequences) / wall time of the windows on the slowest rank
  double tokens_per_s = kNone;
  double data_s = kNone;  // phases: median over steps, of the slowest rank of each step; they sum to the step
  double forward_s = kNone;
  double backward_s = kNone;
  double exposed_s = kNone;  // exposed communication
  double optimizer_s = kNone;
  double compute_only_s = kNone;          // a step without its communication: like step_s
  double communication_only_s = kNone;    // the communication of a step, without the step: like step_s
  double probed_communication_s = kNone;  // of the strategy that auto chose, expected by its probe before
  double overlap = kNone;          // 1 - (step_s - compute_only_s) / communication_only_s; may be negative
  double flops_per_step = kNone;   // per rank, by laws' formula
  double peak_flops = kNone;       // per rank, measured by a matrix product before the study
  double datasheet_flops = kNone;  // by exact device name; absent for an unknown device
  double mfu = kNone;              // flops_per_step / step_s / peak_flops
  double loss_first = kNone;
  double loss_last = kNone;
  int64_t num_skipped = 0;  // updates left out: fp16's gradients were not finite
  double gradient_norm = kNone;
  int64_t first_step = 0;  // a training run: steps done before this launch, and its last evaluation
  double held_out_loss = kNone;
  double accuracy = kNone;
  std::string verified;         // "equal to single", "unverified: why", "wrong: why"
  double verify_error = kNone;  // largest relative difference of losses and gradient norms
  // memory, bytes per rank: the largest over ranks
  double parameter_bytes = kNone;
  double gradient_bytes = kNone;
  double optimizer_bytes = kNone;
  double transient_bytes = kNone;  // slots and buckets of the strategy
  double offloaded_bytes = kNone;  // in host memory, no part of the peak
  double peak_bytes = kNone;       // everything, at the worst moment of a step
  double reserved_bytes = kNone;   // of GPUs: the most that torch's allocator held, free blocks with it
  double device_bytes = kNone;     // of GPUs: in use after the last step, by everything and everyone on it
  double law_parameter_bytes = kNone;
  double law_gradient_bytes = kNone;
  double law_optimizer_bytes = kNone;
  double law_transient_bytes = kNone;
  double law_offloaded_bytes = kNone;
  // traffic, bytes per rank and step (mean over ranks)
  double traffic_bytes = kNone;      // payload of each operation x its ring factor, counted as it happened
  double law_traffic_bytes = kNone;  // by laws' formula
  double between_nodes_bytes =
      kNone;                   // of those, to other nodes, on the rank that sends most: hierarchical alone
  int64_t num_operations = 0;  // collectives per step
  // collectives
  double algbw_gb_s = kNone;
  double busbw_gb_s = kNone;
  int64_t num_wrong = -1;  // elements that differed; -1: not verified
};

struct Record {
  Point point;
  std::string id;  // point_id(point)
  Outcome outcome = Outcome::ok;
  std::string reason;      // why not ok, or what to know about it
  std::string started;     // ISO 8601, UTC
  double duration_s = 0;   // of the whole point, set-up and verification included
  int64_t attempts = 1;    // how often it was begun: again after a rank died or hung
  bool ended_job = false;  // a rank died or hung in the last attempt, and the job with it
  Measures measures;
  std::vector<Series> samples;

  const Series* series(std::string_view name) const;  // nullptr when absent
};

}  // namespace shardmark

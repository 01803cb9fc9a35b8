// What failures of nodes cost a job: how often it should write a checkpoint, and which share of its time
// becomes progress that is kept. Times are in seconds.
//
// Failures come at random (exponential times between them), each stops all ranks, and what was computed since
// the last checkpoint is lost. Ranks compute for an interval, stop to write a checkpoint, and so on; after a
// failure the job is restarted and reads its checkpoint. Failures also strike while it reads or writes.
#pragma once

#include <array>
#include <string>

namespace shardmark {

struct Interruptions {
  double between_s;  // mean time between failures of the whole job
  double write_s;    // of a checkpoint; ranks wait for it
  double read_s;     // of a checkpoint, at each start
  double restart_s;  // from a failure until ranks begin to read: found, nodes replaced, ranks started
};

// Computing between two checkpoints that loses the least time, by first order, sqrt(2 write between): Young,
// A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974.
double young_interval_s(const Interruptions& job);
// By higher order, which also holds where writing is no small part of the time between failures: Daly, A
// higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22(3), 2006, equation 37.
double daly_interval_s(const Interruptions& job);

// Share of the wall time, from 0 to 1, that becomes kept progress with checkpoints after each interval:
// interval / E, with E = exp(read/M) (M + restart) (exp((interval + write)/M) - 1) the mean wall time of an
// interval and M the time between failures. Exact: Bougeret et al., Checkpointing strategies for parallel
// jobs, SC 2011; with restart 0 it is Daly's.
double goodput(const Interruptions& job, double interval_s);

// Unplanned failures of a node (of 8 GPUs) in an hour that others published.
struct PublishedFailures {
  const char* name;
  double per_node_hour;
  const char* source;
};
inline constexpr std::array<PublishedFailures, 3> kPublishedFailures = {
    {{"llama3", 419 / (54 * 24.0 * 16384 / 8),
      "Llama 3, 419 unplanned interruptions in 54 days on 16,384 H100 in nodes of 8 (arXiv 2407.21783)"},
     {"rsc1", 6.50e-3 / 24, "RSC-1, 6.50 failures in 1,000 days of a node of 8 A100 (arXiv 2410.21680)"},
     {"rsc2", 2.34e-3 / 24, "RSC-2, 2.34 failures in 1,000 days of a node of 8 A100 (arXiv 2410.21680)"}}};
// nullptr: a rate that none of them has.
const PublishedFailures* published_failures(double per_node_hour);

// A kind of value, as in base/value.h: a published rate by its name, or failures per node and hour.
struct FailureRate {
  static constexpr const char* kName = "RATE";
  static std::string range();
  static double parse(const std::string& text);  // UsageError
};

}  // namespace shardmark

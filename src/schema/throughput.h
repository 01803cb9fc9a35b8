// How fast training goes: what tables, plots, progress and the lines of `train` say, for models of tokens in
// tokens.
#pragma once

#include <cmath>

#include "base/units.h"
#include "schema/record.h"

namespace shardmark {

// The share of a device's FLOP/s that a rank used. Not a number where the rate is not known, and where the
// share would be above 1: then the FLOPs are more than the device computed, or the rate is less than it can.
inline double share_of_rate(double flops, double seconds, double flops_per_s) {
  const double share = flops / seconds / flops_per_s;
  return share <= 1 ? share : Measures::kNone;
}

// Model FLOPs utilization (Chowdhery et al., PaLM, 2022, appendix B): against the data sheet.
inline double mfu_of(const Measures& m) {
  return share_of_rate(m.flops_per_step, m.step_s, m.datasheet_flops);
}

// Of all ranks together; tokens_per_s is a NaN where samples are no tokens.
struct Throughput {
  double samples_per_s, tokens_per_s;
  int64_t ranks;
  double mfu = Measures::kNone;
  double of_matmul = Measures::kNone;  // share of the FLOP/s that a matrix product reaches on the device

  bool is_of_tokens() const { return !std::isnan(tokens_per_s); }
  double value() const { return is_of_tokens() ? tokens_per_s : samples_per_s; }
  double per_sample() const { return is_of_tokens() ? tokens_per_s / samples_per_s : 1; }
  const char* unit() const { return is_of_tokens() ? "tokens/s" : "samples/s"; }
  double tokens_per_s_and_rank() const { return tokens_per_s / static_cast<double>(ranks); }
  // Hours of all ranks together for so many samples or tokens, at so many a second of all of them.
  double rank_hours(double amount, double per_s) const {
    return static_cast<double>(ranks) * amount / per_s / 3600;
  }
  std::string text() const { return format_number(value(), 4) + " " + unit(); }
};

inline Throughput throughput_of(const Point& point, const Measures& m) {
  return {m.samples_per_s, m.tokens_per_s, point.ranks, m.mfu};
}

// Of steps that took so many seconds. tokens_per_sample: 0 where samples are no tokens.
inline Throughput throughput_of(const Point& point, int64_t tokens_per_sample, int64_t steps,
                                double seconds) {
  const double samples_per_s = static_cast<double>(point.global_batch() * steps) / seconds;
  const double tokens = tokens_per_sample > 0 ? static_cast<double>(tokens_per_sample) : Measures::kNone;
  return {samples_per_s, samples_per_s * tokens, point.ranks};
}

}  // namespace shardmark

// Throughput of training as tables, plots, progress lines and `train` print it: in tokens if the model's
// samples consist of tokens, in samples otherwise.
#pragma once

#include <cmath>

#include "base/units.h"
#include "schema/record.h"

namespace shardmark {

// The share of a device's FLOP/s that a rank used. NaN if the rate is unknown. NaN as well if the share would
// be above 1: then the formula counts more FLOPs than the device computed, or the rate is below what it can
// do.
inline double share_of_rate(double flops, double seconds, double flops_per_s) {
  const double share = flops / seconds / flops_per_s;
  return share <= 1 ? share : Measures::kNone;
}

// Model FLOPs utilization (Chowdhery et al., PaLM, 2022, appendix B), relative to the peak in the data sheet.
inline double mfu_of(const Measures& m) {
  return share_of_rate(m.flops_per_step, m.step_s, m.datasheet_flops);
}

// The throughput of all ranks together. tokens_per_s is NaN if samples are not made of tokens.
struct Throughput {
  double samples_per_s, tokens_per_s;
  int64_t ranks;
  double mfu = Measures::kNone;
  double of_matmul = Measures::kNone;  // share of the FLOP/s that a matrix product reaches

  bool is_of_tokens() const { return !std::isnan(tokens_per_s); }
  double value() const { return is_of_tokens() ? tokens_per_s : samples_per_s; }
  double per_sample() const { return is_of_tokens() ? tokens_per_s / samples_per_s : 1; }
  const char* unit() const { return is_of_tokens() ? "tokens/s" : "samples/s"; }
  double tokens_per_s_and_rank() const { return tokens_per_s / static_cast<double>(ranks); }
  // Hours that all ranks together spend on `amount` samples or tokens, at `per_s` of them per second.
  double rank_hours(double amount, double per_s) const {
    return static_cast<double>(ranks) * amount / per_s / 3600;
  }
  std::string text() const { return format_number(value(), 4) + " " + unit(); }
};

inline Throughput throughput_of(const Point& point, const Measures& m) {
  return {m.samples_per_s, m.tokens_per_s, point.ranks, m.mfu};
}

// The throughput of `steps` steps that took `seconds` in all. tokens_per_sample is 0 if samples are not made
// of tokens.
inline Throughput throughput_of(const Point& point, int64_t tokens_per_sample, int64_t steps,
                                double seconds) {
  const double samples_per_s = static_cast<double>(point.global_batch() * steps) / seconds;
  const double tokens = tokens_per_sample > 0 ? static_cast<double>(tokens_per_sample) : Measures::kNone;
  return {samples_per_s, samples_per_s * tokens, point.ranks};
}

}  // namespace shardmark

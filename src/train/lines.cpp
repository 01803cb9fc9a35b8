// Converts curves to series of a study and back, and prints progress lines.
#include "train/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/units.h"
#include "schema/throughput.h"

namespace shardmark {
namespace {

struct NamedCurve {
  const char* series;
  std::vector<double> Curves::*curve;
};
constexpr NamedCurve kStepCurves[] = {{"loss", &Curves::loss},
                                      {"learning_rate", &Curves::learning_rate},
                                      {"gradient_norm", &Curves::gradient_norm}};
constexpr NamedCurve kEvaluationCurves[] = {{"held_out_at", &Curves::held_out_at},
                                            {"held_out_loss", &Curves::held_out_loss},
                                            {"accuracy", &Curves::accuracy}};
constexpr const char *kCheckpointWrite = "checkpoint_write", *kCheckpointRead = "checkpoint_read";

}  // namespace

// A step is over when its slowest rank is done. So the maximum is taken for each step, and not of the
// ranks' sums.
double Curves::slowest_s(size_t num_steps) const {
  double sum = 0;
  const size_t end = step_s.front().size();
  for (size_t step = end - num_steps; step < end; ++step) {
    double slowest = 0;
    for (const auto& rank : step_s) slowest = std::max(slowest, rank[step]);
    sum += slowest;
  }
  return sum;
}

Curves::Sizes Curves::sizes() const {
  return {num_steps(), std::ssize(held_out_at), std::ssize(checkpoint_write_s),
          std::ssize(checkpoint_read_s)};
}

std::vector<Series> Curves::series(const Sizes& after) const {
  std::vector<Series> found;
  const auto add = [&](const char* name, const std::vector<double>& values, int64_t begin) {
    const int64_t columns = std::ssize(values) - begin;
    if (columns > 0) found.push_back({name, 1, columns, {values.begin() + begin, values.end()}});
  };
  if (const int64_t columns = num_steps() - after.steps; columns > 0) {
    Series steps{"step", std::ssize(step_s), columns, {}};
    for (const auto& rank : step_s)
      steps.values.insert(steps.values.end(), rank.begin() + after.steps, rank.end());
    found.push_back(std::move(steps));
  }
  for (const auto& [name, curve] : kStepCurves) add(name, this->*curve, after.steps);
  for (const auto& [name, curve] : kEvaluationCurves) add(name, this->*curve, after.evaluations);
  add(kCheckpointWrite, checkpoint_write_s, after.writes);
  add(kCheckpointRead, checkpoint_read_s, after.reads);
  return found;
}

// Steps and evaluations up to last_step are taken, and later ones are cut off, because those steps are done
// again. If one of these series is missing or too short, there is nothing to go on from.
std::optional<Curves> Curves::of(const Record& record, int64_t last_step) {
  Curves curves;
  curves.first_step = record.measures.first_step;
  curves.step_s.resize(static_cast<size_t>(record.point.ranks));
  const int64_t num_steps = last_step - curves.first_step;
  if (num_steps < 0) return {};
  if (num_steps == 0) return curves;
  const auto take = [&](const char* name, int64_t row, int64_t columns, std::vector<double>& curve) {
    const Series* series = record.series(name);
    if (series == nullptr || row >= series->rows || columns > series->columns) return false;
    const auto begin = series->values.begin() + row * series->columns;
    curve.assign(begin, begin + columns);
    return true;
  };
  for (size_t rank = 0; rank < curves.step_s.size(); ++rank)
    if (!take("step", static_cast<int64_t>(rank), num_steps, curves.step_s[rank])) return {};
  for (const auto& [name, curve] : kStepCurves)
    if (!take(name, 0, num_steps, curves.*curve)) return {};
  int64_t num_evaluations = 0;
  if (const Series* at = record.series("held_out_at"))
    num_evaluations = std::count_if(at->values.begin(), at->values.end(),
                                    [&](double step) { return step <= static_cast<double>(last_step); });
  if (num_evaluations > 0)
    for (const auto& [name, curve] : kEvaluationCurves)
      if (!take(name, 0, num_evaluations, curves.*curve)) return {};
  if (const Series* times = record.series(kCheckpointWrite)) curves.checkpoint_write_s = times->values;
  if (const Series* times = record.series(kCheckpointRead)) curves.checkpoint_read_s = times->values;
  return curves;
}

void Lines::head() const {
  if (!prints_) return;
  const bool of_tokens = tokens_per_sample_ > 0;
  print_progress(fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10} {:>12}{} {:>8} {:>10}{}\n", "step", "loss",
                             "lr", "gradient", "step time", of_tokens ? "tokens/s" : "samples/s",
                             of_tokens && point_.ranks > 1 ? "   of a rank" : "",
                             std::isnan(datasheet_flops_) ? "GFLOP/s" : "MFU %", "peak",
                             scaled_ ? fmt::format(" {:>10} {:>8}", "loss scale", "skipped") : ""));
}

std::string Lines::use_text(double step_s) const {
  if (std::isnan(datasheet_flops_)) return format_number(flops_ / step_s / 1e9, 4);
  const double mfu = share_of_rate(flops_, step_s, datasheet_flops_);
  return std::isnan(mfu) ? "-" : fmt::format("{:.1f}", 100 * mfu);
}

void Lines::step(int64_t step, const Curves& curves, size_t num_steps, double peak_bytes) const {
  if (!prints_) return;
  const double slowest_s = curves.slowest_s(num_steps);
  const auto steps = static_cast<double>(num_steps);
  const Throughput speed =
      throughput_of(point_, tokens_per_sample_, static_cast<int64_t>(num_steps), slowest_s);
  const double norm = curves.gradient_norm.back();
  print_progress(fmt::format(
      "{:>8} {:>10.5f} {:>10.3g} {:>10} {:>10} {:>12.1f}{} {:>8} {:>10}{}\n", step, curves.loss.back(),
      curves.learning_rate.back(), std::isnan(norm) ? "-" : fmt::format("{:.4g}", norm),
      format_seconds(slowest_s / steps), speed.value(),
      speed.is_of_tokens() && point_.ranks > 1 ? fmt::format("{:>12.1f}", speed.tokens_per_s_and_rank()) : "",
      use_text(slowest_s / steps), format_bytes(peak_bytes),
      scaled_ ? fmt::format(" {:>10g} {:>8}", curves.loss_scale, curves.num_skipped) : ""));
}

void Lines::evaluation(int64_t step, const Curves& curves) const {
  note(fmt::format("step {}: held-out loss {:.5f}, accuracy {:.2f} %", step, curves.held_out_loss.back(),
                   100 * curves.accuracy.back()));
}

void Lines::end(int64_t step, const Curves& curves) const {
  if (scaled_)
    note(fmt::format("{} of {} steps skipped, their gradients were not finite in fp16; loss scale {:g}",
                     curves.num_skipped, step, curves.loss_scale));
}

void Lines::note(const std::string& text) const {
  if (!prints_) return;
  print_progress(text + "\n");
}

}  // namespace shardmark

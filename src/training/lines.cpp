// Curves to series, and to lines.
#include "training/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/units.h"

namespace shardmark {

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

void Curves::move_into(Record& record) {
  const auto add = [&](const char* name, std::vector<double>& values) {
    const auto columns = static_cast<int64_t>(values.size());
    if (columns > 0) record.samples.push_back({name, 1, columns, std::move(values)});
  };
  if (!step_s.empty() && !step_s.front().empty()) {
    Series steps{"step", std::ssize(step_s), std::ssize(step_s.front()), {}};
    for (const auto& rank : step_s) steps.values.insert(steps.values.end(), rank.begin(), rank.end());
    record.samples.push_back(std::move(steps));
  }
  add("loss", loss);
  add("learning_rate", learning_rate);
  add("gradient_norm", gradient_norm);
  add("held_out_at", held_out_at);
  add("held_out_loss", held_out_loss);
  add("accuracy", accuracy);
}

void Lines::head() const {
  if (!prints_) return;
  print_progress(fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}{}\n", "step", "loss", "lr",
                             "gradient", "step time", tokens_per_sample_ > 0 ? "tokens/s" : "samples/s",
                             "peak", scaled_ ? fmt::format(" {:>10} {:>8}", "loss scale", "skipped") : ""));
}

void Lines::step(int64_t step, const Curves& curves, size_t num_steps, double peak_bytes) const {
  if (!prints_) return;
  const double slowest_s = curves.slowest_s(num_steps);
  const auto samples = static_cast<double>(global_batch_ * static_cast<int64_t>(num_steps));
  const double rate = samples * static_cast<double>(std::max<int64_t>(1, tokens_per_sample_)) / slowest_s;
  const double norm = curves.gradient_norm.back();
  print_progress(
      fmt::format("{:>8} {:>10.5f} {:>10.3g} {:>10} {:>10} {:>12.1f} {:>10}{}\n", step, curves.loss.back(),
                  curves.learning_rate.back(), std::isnan(norm) ? "-" : fmt::format("{:.4g}", norm),
                  format_seconds(slowest_s / static_cast<double>(num_steps)), rate, format_bytes(peak_bytes),
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

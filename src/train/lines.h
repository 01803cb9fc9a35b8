// What a run records step by step: curves for the study, progress lines for the user.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/record.h"

namespace shardmark {

// Vectors have one entry per step since first_step, per evaluation, per checkpoint written, or per launch
// (checkpoint_read_s).
struct Curves {
  int64_t first_step = 0;  // steps done before
  std::vector<double> loss, learning_rate, gradient_norm;
  std::vector<std::vector<double>> step_s;  // [rank][step]
  std::vector<double> held_out_at, held_out_loss, accuracy;
  std::vector<double> checkpoint_write_s, checkpoint_read_s;
  // For fp16: the loss scale after the latest step, and the number of steps of the whole run that were
  // skipped.
  double loss_scale = 0;
  int64_t num_skipped = 0;

  // The times of the slowest rank in each of the last num_steps steps, added up.
  double slowest_s(size_t num_steps) const;

  int64_t num_steps() const { return std::ssize(loss); }
  struct Sizes {
    int64_t steps = 0, evaluations = 0, writes = 0, reads = 0;
  };
  Sizes sizes() const;
  // The curves as series of the study, from the given sizes on.
  std::vector<Series> series(const Sizes& after) const;
  std::vector<Series> series() const { return series(Sizes()); }
  // The inverse of series(), up to a step of the run. Returns nothing if the record does not reach that step.
  static std::optional<Curves> of(const Record& record, int64_t last_step);
};

// Prints lines to the standard output of rank 0, and nothing on other ranks.
class Lines {
 public:
  // tokens_per_sample is 0 if samples are not tokens. `flops` is the model's per rank and step,
  // datasheet_flops the device's per second. If the latter is known, lines show the MFU, otherwise only
  // FLOP/s: each launch would measure a new peak, so that equal steps would show different utilizations.
  // `scaled` adds fp16's loss scale and skipped steps.
  Lines(bool prints, const Point& point, int64_t tokens_per_sample, double flops, double datasheet_flops,
        bool scaled)
      : prints_(prints),
        scaled_(scaled),
        point_(point),
        tokens_per_sample_(tokens_per_sample),
        flops_(flops),
        datasheet_flops_(datasheet_flops) {}

  void head() const;
  // Prints the latest entries of the curves; the speed is that of the last num_steps steps.
  void step(int64_t step, const Curves& curves, size_t num_steps, double peak_bytes) const;
  void evaluation(int64_t step, const Curves& curves) const;
  void end(int64_t step, const Curves& curves) const;
  void note(const std::string& text) const;

 private:
  std::string use_text(double step_s) const;  // utilization of the device by a rank

  bool prints_, scaled_;
  const Point& point_;
  int64_t tokens_per_sample_;
  double flops_, datasheet_flops_;
};

}  // namespace shardmark

// What a run records, step by step: curves for the study, progress lines for the user.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/record.h"

namespace shardmark {

// One entry per step after the first ones, per evaluation, per checkpoint or per launch.
struct Curves {
  int64_t first_step = 0;  // done before
  std::vector<double> loss, learning_rate, gradient_norm;
  std::vector<std::vector<double>> step_s;  // [rank][step]
  std::vector<double> held_out_at, held_out_loss, accuracy;
  std::vector<double> checkpoint_write_s, checkpoint_read_s;
  // fp16: after the latest step; the steps of the whole run that changed nothing.
  double loss_scale = 0;
  int64_t num_skipped = 0;

  // The slowest rank's times of the last num_steps steps, added up.
  double slowest_s(size_t num_steps) const;

  int64_t num_steps() const { return std::ssize(loss); }
  struct Sizes {
    int64_t steps = 0, evaluations = 0, writes = 0, reads = 0;
  };
  Sizes sizes() const;
  // Series of the study: what came after these.
  std::vector<Series> series(const Sizes& after) const;
  std::vector<Series> series() const { return series(Sizes()); }
  // The inverse of series(), up to a step of the run; nothing where the record does not reach that step.
  static std::optional<Curves> of(const Record& record, int64_t last_step);
};

// Lines on the standard output of rank 0; nothing on other ranks.
class Lines {
 public:
  // tokens_per_sample: 0 where samples are no tokens. flops: of the model, in a rank's step. datasheet_flops:
  // a device's in a second; lines show the MFU where it is known, else the FLOP/s alone: each launch would
  // measure a peak anew, and equal steps would get other shares of it. scaled: with fp16's loss scale and
  // skipped steps.
  Lines(bool prints, const Point& point, int64_t tokens_per_sample, double flops, double datasheet_flops,
        bool scaled)
      : prints_(prints),
        scaled_(scaled),
        point_(point),
        tokens_per_sample_(tokens_per_sample),
        flops_(flops),
        datasheet_flops_(datasheet_flops) {}

  void head() const;
  // After a step: the latest of the curves; speed over the last num_steps steps.
  void step(int64_t step, const Curves& curves, size_t num_steps, double peak_bytes) const;
  void evaluation(int64_t step, const Curves& curves) const;
  void end(int64_t step, const Curves& curves) const;
  void note(const std::string& text) const;

 private:
  std::string use_text(double step_s) const;  // of the device, by a rank

  bool prints_, scaled_;
  const Point& point_;
  int64_t tokens_per_sample_;
  double flops_, datasheet_flops_;
};

}  // namespace shardmark

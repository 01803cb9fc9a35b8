// What stands between the reduced gradient and the update: its norm, clipping, and the loss scale of fp16.
// Everything stays on the device: no step waits for the host.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

namespace shardmark {

// What an update does to its gradients before it uses them: float scalars on the device; undefined: nothing.
struct UpdateControl {
  at::Tensor divisor;    // gradients are divided by it
  at::Tensor found_inf;  // not 0: the update is left out
};

// Dynamic loss scaling: the loss is scaled up so that small gradients survive fp16. A step whose gradient is
// not finite is left out and halves the scale; 2,000 steps in a row without one double it. Source:
// Micikevicius et al., ICLR 2018, section 3.2; the constants are those of torch's GradScaler. The norm is
// over all ranks that train together, so the decision is the same on all of them.
class GradientGuard {
 public:
  // clip_norm: gradients of a larger norm are scaled down to it; 0: never.
  GradientGuard(double clip_norm, bool scales_loss, at::Device device);

  bool needs_norm() const { return clip_norm_ > 0 || scale_.defined(); }
  const at::Tensor& loss_scale() const { return scale_; }  // float scalar; undefined: 1

  // squares: sum of squares of the (scaled) gradient, double scalar. Returns the norm of the unscaled one,
  // double scalar.
  at::Tensor inspect(const at::Tensor& squares);
  const UpdateControl& control() const { return control_; }
  void after_update();

  // What checkpoints keep, as views; nothing without a loss scale.
  std::map<std::string, at::Tensor> state() const;
  int64_t num_skipped() const;  // updates left out so far. Waits for the device

 private:
  double clip_norm_;
  at::Tensor scale_, growth_tracker_, num_skipped_;
  UpdateControl control_;
};

}  // namespace shardmark

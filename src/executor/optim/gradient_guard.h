// What happens between the reduced gradient and the update: the gradient norm, clipping, and the loss scale
// of fp16. All values stay on the device, so that no step waits for the host.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

namespace shardmark {

// What an update does to its gradients before it uses them: float scalars on the device; undefined means
// nothing.
struct UpdateControl {
  at::Tensor divisor;    // gradients are divided by it
  at::Tensor found_inf;  // not 0: the update is skipped
};

// Dynamic loss scaling: the loss is scaled up, so that small gradients do not underflow in fp16. A step whose
// gradient is not finite is skipped and halves the scale; 2,000 steps in a row without one double it. Source:
// Micikevicius et al., ICLR 2018, section 3.2; the constants are those of torch's GradScaler. The norm is
// computed over all ranks that train together, so that all of them come to the same decision.
class GradientGuard {
 public:
  // clip_norm: gradients with a larger norm are scaled down to it; 0: never.
  GradientGuard(double clip_norm, bool scales_loss, at::Device device);

  bool needs_norm() const { return clip_norm_ > 0 || scale_.defined(); }
  const at::Tensor& loss_scale() const { return scale_; }  // float scalar; undefined: 1

  // `squares` is the sum of squares of the (scaled) gradient, a double scalar. Returns the norm of the
  // unscaled gradient, a double scalar.
  at::Tensor inspect(const at::Tensor& squares);
  const UpdateControl& control() const { return control_; }
  void after_update();

  // The tensors that checkpoints save, as views. Empty without a loss scale.
  std::map<std::string, at::Tensor> state() const;
  int64_t num_skipped() const;  // skipped updates so far; waits for the device

 private:
  double clip_norm_;
  at::Tensor scale_, growth_tracker_, num_skipped_;
  UpdateControl control_;
};

}  // namespace shardmark

// Computes norm, clipping and loss scale with a few operations on device scalars.
#include "executor/optim/gradient_guard.h"

#include <ATen/ops/_amp_update_scale.h>

#include "device/device.h"

namespace shardmark {
namespace {

constexpr float kInitialScale = 65536;
constexpr double kGrowth = 2, kBackoff = 0.5;
constexpr int64_t kGrowthInterval = 2000;

}  // namespace

GradientGuard::GradientGuard(double clip_norm, bool scales_loss, at::Device device) : clip_norm_(clip_norm) {
  if (!scales_loss) return;
  const auto scalar = at::TensorOptions(device).dtype(at::kFloat);
  scale_ = at::full({}, kInitialScale, scalar);
  growth_tracker_ = at::zeros({}, scalar.dtype(at::kInt));
  num_skipped_ = at::zeros({}, scalar);
}

// The update divides gradients by one number: the loss scale, times max(1, norm / clip_norm), which is 1
// for a gradient within the limit. Nothing here waits for the device. With a loss scale, a norm that is
// not finite makes found_inf 1, so that the update is skipped on all ranks.
at::Tensor GradientGuard::inspect(const at::Tensor& squares) {
  at::Tensor norm = squares.sqrt();
  if (scale_.defined()) {
    norm = norm / scale_;
    control_.found_inf = norm.isfinite().logical_not().to(at::kFloat);
    control_.divisor = scale_;
  }
  if (clip_norm_ > 0) {
    const at::Tensor excess = (norm / clip_norm_).clamp_min(1).to(at::kFloat);
    control_.divisor = scale_.defined() ? excess * scale_ : excess;
  }
  return norm;
}

void GradientGuard::after_update() {
  if (!scale_.defined()) return;
  num_skipped_ += control_.found_inf;
  at::_amp_update_scale_(scale_, growth_tracker_, control_.found_inf, kGrowth, kBackoff, kGrowthInterval);
}

std::map<std::string, at::Tensor> GradientGuard::state() const {
  if (!scale_.defined()) return {};
  return {{"loss_scale", scale_}, {"loss_scale_growth", growth_tracker_}, {"num_skipped", num_skipped_}};
}

int64_t GradientGuard::num_skipped() const {
  return num_skipped_.defined() ? static_cast<int64_t>(item<float>(num_skipped_)) : 0;
}

}  // namespace shardmark

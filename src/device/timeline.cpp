// The clock on the CPU; pooled CUDA events with timing on a GPU.
#include "device/timeline.h"

#include <ATen/cuda/CUDAEvent.h>

#include "device/waiting.h"

namespace shardmark {

struct Timeline::Events {
  std::vector<at::cuda::CUDAEvent> pool;
  size_t used = 0;
};

Timeline::Timeline(at::Device device) : device_(device) {
  if (device.is_cuda()) events_ = std::make_unique<Events>();
}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&&) noexcept = default;
Timeline& Timeline::operator=(Timeline&&) noexcept = default;

at::Device Timeline::device() const { return device_; }

size_t Timeline::mark() {
  if (!events_) {
    stamps_.push_back(now_s());
    return stamps_.size() - 1;
  }
  if (events_->used == events_->pool.size()) events_->pool.emplace_back(cudaEventDefault);  // keeps time
  events_->pool[events_->used].record();
  return events_->used++;
}

void Timeline::clear() {
  stamps_.clear();
  if (events_) events_->used = 0;
}

std::vector<double> Timeline::resolve() {
  if (!events_) {
    std::vector<double> times = std::move(stamps_);
    stamps_.clear();
    for (size_t i = times.size(); i-- > 0;) times[i] -= times[0];
    return times;
  }
  std::vector<double> times(events_->used);
  if (!times.empty()) wait_for_device([&] { return events_->pool[events_->used - 1].query(); });
  for (size_t i = 1; i < times.size(); ++i)  // neighbours: a float of milliseconds stays exact enough
    times[i] = times[i - 1] + events_->pool[i - 1].elapsed_time(events_->pool[i]) * 1e-3;
  events_->used = 0;
  return times;
}

}  // namespace shardmark

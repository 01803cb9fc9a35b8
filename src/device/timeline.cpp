// Marks are clock readings on the CPU and pooled CUDA events with timing on a GPU.
#include "device/timeline.h"

#include <ATen/cuda/CUDAEvent.h>

#include "device/device.h"

namespace shardmark {

struct Timeline::Events {
  std::vector<at::cuda::CUDAEvent> pool;  // event i belongs to mark i; the rest is spare
};

Timeline::Timeline(at::Device device) : device_(device) {
  if (device.is_cuda()) events_ = std::make_unique<Events>();
}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&&) noexcept = default;
Timeline& Timeline::operator=(Timeline&&) noexcept = default;

at::Device Timeline::device() const { return device_; }

size_t Timeline::mark(int64_t what) {
  const size_t index = marks_.size();
  marks_.push_back({what, events_ ? 0 : now_s()});
  if (!events_) return index;
  if (index == events_->pool.size()) events_->pool.emplace_back(cudaEventDefault);  // an event with timing
  events_->pool[index].record();
  return index;
}

void Timeline::clear() { marks_.clear(); }

std::vector<Timeline::Mark> Timeline::resolve() {
  std::vector<Mark> marks = std::exchange(marks_, {});
  if (!events_) {
    // From the last mark to the first, because the first one becomes 0 by it.
    for (size_t i = marks.size(); i-- > 0;) marks[i].at_s -= marks[0].at_s;
    return marks;
  }
  // The events of a stream complete in their order, so the last one is enough to wait for.
  if (!marks.empty()) wait_for_device([&] { return events_->pool[marks.size() - 1].query(); });
  // Differences of neighbours: a float of milliseconds is exact enough for those.
  for (size_t i = 1; i < marks.size(); ++i)
    marks[i].at_s = marks[i - 1].at_s + events_->pool[i - 1].elapsed_time(events_->pool[i]) * 1e-3;
  return marks;
}

}  // namespace shardmark

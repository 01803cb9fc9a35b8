// Time stamps without a host sync: the monotonic clock on the CPU, events on the current CUDA stream.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "base/clock.h"

namespace shardmark {

// Marks in the order they were made; after resolve() their times in seconds since the first mark.
class Timeline {
 public:
  explicit Timeline(at::Device device);
  ~Timeline();
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;

  size_t mark();                  // index of the new mark
  void clear();                   // forgets the marks; a GPU's events are kept for those that follow
  std::vector<double> resolve();  // waits for the last mark on a GPU; then clears
  at::Device device() const;

 private:
  struct Events;
  at::Device device_;
  std::vector<double> stamps_;
  std::unique_ptr<Events> events_;
};

}  // namespace shardmark

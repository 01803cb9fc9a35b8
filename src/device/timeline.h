// Time stamps without a host sync: readings of the monotonic clock on the CPU, events on the current CUDA
// stream on a GPU.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "base/clock.h"

namespace shardmark {

// Marks in the order in which they were made. Each has a number that says what begins there.
class Timeline {
 public:
  // Values apart from the numbers that callers use. Exposed communication of kind k is kExposed - k.
  static constexpr int64_t kNothing = -1, kExposed = -2;
  struct Mark {
    int64_t what;
    double at_s;  // since the first mark
  };
  explicit Timeline(at::Device device);
  ~Timeline();
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;

  size_t mark(int64_t what = 0);  // returns the index of the new mark
  size_t size() const { return marks_.size(); }
  void clear();                 // drops the marks; events are kept for reuse
  std::vector<Mark> resolve();  // on a GPU waits for the last mark; then clears
  at::Device device() const;

  // The time inside the scope counts as exposed communication of that kind. With a null timeline nothing is
  // counted.
  class Exposed {
   public:
    Exposed(Timeline* timeline, int64_t kind) : timeline_(timeline) {
      if (timeline_ == nullptr) return;
      outer_ = timeline_->marks_.empty() ? kNothing : timeline_->marks_.back().what;
      timeline_->mark(kExposed - kind);
    }
    ~Exposed() {
      if (timeline_ != nullptr) timeline_->mark(outer_);
    }
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;

   private:
    Timeline* timeline_;
    int64_t outer_ = kNothing;
  };

 private:
  struct Events;
  at::Device device_;
  std::vector<Mark> marks_;  // on the CPU with their times
  std::unique_ptr<Events> events_;
};

}  // namespace shardmark

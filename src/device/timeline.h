// Time stamps without a host sync: the monotonic clock on the CPU, events on the current CUDA stream.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "base/clock.h"

namespace shardmark {

// Marks in the order they were made, each with a number that says what begins there.
class Timeline {
 public:
  // Beside the numbers of whoever marks. Exposed communication of kind k is kExposed - k.
  static constexpr int64_t kNothing = -1, kExposed = -2;
  struct Mark {
    int64_t what;
    double at_s;  // since the first mark
  };
  explicit Timeline(at::Device device);
  ~Timeline();
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;

  size_t mark(int64_t what = 0);  // index of the new mark
  size_t size() const { return marks_.size(); }
  void clear();                 // forgets the marks; a GPU's events are kept for those that follow
  std::vector<Mark> resolve();  // waits for the last mark on a GPU; then clears
  at::Device device() const;

  // The time inside counts as exposed communication of that kind; a null timeline counts nothing.
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
  std::vector<Mark> marks_;  // on the CPU by its clock
  std::unique_ptr<Events> events_;
};

}  // namespace shardmark

// Where the time of a step goes: the computing thread (or stream) is in exactly one phase at any moment, so
// the phases of a step add up to the step by construction.
#pragma once

#include <array>
#include <vector>

#include "device/timeline.h"

namespace shardmark {

enum class Phase { data, forward, backward, exposed, optimizer };
inline constexpr size_t kNumPhases = 5;

class PhaseClock {
 public:
  explicit PhaseClock(at::Device device) : timeline_(device) {}

  void begin_step();        // the step starts in Phase::data
  void enter(Phase phase);  // ends the phase before
  void end();               // ends the last step
  Phase current() const { return marks_.empty() ? Phase::data : marks_.back().phase; }
  bool on_gpu() const { return timeline_.device().is_cuda(); }

  // Seconds [step][phase] since the last resolve. Waits for the stream on a GPU.
  std::vector<std::array<double, kNumPhases>> resolve();

  // The time inside counts as exposed communication; a null clock counts nothing.
  class Exposed {
   public:
    explicit Exposed(PhaseClock* clock) : clock_(clock) {
      if (clock_ == nullptr) return;
      outer_ = clock_->current();
      clock_->enter(Phase::exposed);
    }
    ~Exposed() {
      if (clock_ != nullptr) clock_->enter(outer_);
    }
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;

   private:
    PhaseClock* clock_;
    Phase outer_ = Phase::data;
  };

 private:
  struct Mark {
    Phase phase;
    bool begins_step;
  };
  Timeline timeline_;
  std::vector<Mark> marks_;  // parallel to the timeline's marks
};

}  // namespace shardmark

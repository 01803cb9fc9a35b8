// Two who watch a step of the training loop: one writes down its program, one takes the time of its moments.
#pragma once

#include "comm/tap.h"
#include "device/timeline.h"
#include "workloads/training_loop.h"

namespace shardmark {

// The program of a step; hears the operations of a tap between the moments of the loop.
class StepTrace final : public OperationListener, public StepObserver {
 public:
  void begin_step();
  void at(laws::Moment::What what, int64_t index) override { program_.add(what, index); }
  int64_t started(const laws::StartedOperation& operation) override;
  void waited(int64_t number) override;
  const laws::Program& program() const { return program_; }  // of the last step

 private:
  laws::Program program_;
  int64_t first_ = 0;         // number of the step's first operation
  int64_t first_before_ = 0;  // and of that of the step before
};

// How long each moment of a step lasts.
class MomentTimer final : public StepObserver {
 public:
  explicit MomentTimer(at::Device device) : timeline_(device) {}
  void at(laws::Moment::What what, int64_t index) override;
  void end_step();  // ends the last moment of a step

  // Medians over the steps since the last call, in seconds, all micro-batches alike: as laid out in series
  // "block_time" (schema/fields.h). Waits for the stream on a GPU.
  std::vector<double> medians(size_t num_blocks);

 private:
  Timeline timeline_;
  std::vector<std::optional<laws::Moment>> moments_;  // parallel to the marks; none: a step ends
};

}  // namespace shardmark

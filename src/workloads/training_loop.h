// The only training loop: it walks the blocks of a model and tells the strategy what happens around each.
#pragma once

#include <exception>
#include <functional>

#include "device/phases.h"
#include "laws/program.h"
#include "models/model.h"
#include "optim/gradient_guard.h"
#include "strategies/strategy.h"
#include "watch/flight.h"

namespace shardmark {

struct StepResult {
  at::Tensor loss;  // this rank's, the mean over its micro-batches: scalar, on the device
  at::Tensor
      gradient_norm;  // of all ranks that train together, before clipping; undefined if nobody needs it
};

struct LoopOptions {
  int64_t accumulation = 1;   // micro-batches per step
  int64_t checkpointing = 0;  // every n-th block is recomputed in backward; 1: all, 0: none
  uint64_t random_key = 0;    // of dropout: another one on every rank
  int64_t first_step = 0;     // of a run that goes on
  int64_t num_ranks = 1;      // that wait for each other in a step
};

// Is told as each moment of a step begins, but for operations.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void at(laws::Moment::What what, int64_t index) = 0;
};

class TrainingLoop {
 public:
  // guard: outlives the loop.
  TrainingLoop(Model& model, Strategy& strategy, PhaseClock& clock, GradientGuard& guard,
               const LoopOptions& options)
      : model_(model),
        strategy_(strategy),
        clock_(clock),
        guard_(guard),
        options_(options),
        step_(options.first_step) {}

  // One step: forward and backward of `accumulation` micro-batches, reduction, update.
  //
  // Note [Recomputation]: a checkpointed block keeps its input alone (Chen et al. 2016); backward runs it
  // again first. Dropout draws from a generator that every run of a block seeds by (key, step, micro-batch,
  // block), so that the second run draws the same without any saved state, and a resumed run the same as the
  // first.
  //
  // Note [Draining]: a rank whose computing fails (out of memory, a bad batch) goes through the rest of the
  // step, and through all steps after it, without computing: every collective still happens, so no rank
  // hangs. failure() then says what it was.
  //
  // Note [Out of memory between ranks]: on a GPU memory may run out outside of what a rank may drain from,
  // while a strategy reduces or updates. Then the other ranks wait in NCCL for one that threw: the job ends
  // at once, with a line that says so, instead of hanging. On one rank it is an outcome like any other.
  StepResult step(const std::function<Batch()>& next_batch, bool wants_norm = false);

  void set_observer(StepObserver* observer) { observer_ = observer; }  // nullptr: nobody
  void set_flight(Flight* flight) { flight_ = flight; }  // where steps and blocks are noted; nullptr: nowhere

  std::exception_ptr failure() const { return failure_; }

 private:
  StepResult run_step(const std::function<Batch()>& next_batch, bool wants_norm);
  at::Tensor forward(const Batch& batch);
  void backward(const at::Tensor& loss, const Batch& batch);
  at::Tensor run_block(size_t block, const Batch& batch);
  bool is_checkpointed(size_t block) const;
  void tell(laws::Moment::What what, int64_t index = 0);
  // Runs compute unless this rank drains, and makes it drain if that throws.
  void attempt(const std::function<void()>& compute);

  Model& model_;
  Strategy& strategy_;
  PhaseClock& clock_;
  GradientGuard& guard_;
  LoopOptions options_;
  int64_t step_, micro_batch_ = 0;
  std::vector<at::Tensor> inputs_;   // [block]: what it was given, cut off from the graph before it
  std::vector<at::Tensor> outputs_;  // [block]
  std::exception_ptr failure_;
  StepObserver* observer_ = nullptr;
  Flight* flight_ = nullptr;
};

}  // namespace shardmark

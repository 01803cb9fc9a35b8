// The only training loop: it walks the blocks of a model and tells the strategy what happens around each.
#pragma once

#include <exception>
#include <functional>

#include "device/phases.h"
#include "models/model.h"
#include "strategies/strategy.h"

namespace shardmark {

class TrainingLoop {
 public:
  TrainingLoop(Model& model, Strategy& strategy, PhaseClock& clock, int64_t accumulation)
      : model_(model), strategy_(strategy), clock_(clock), accumulation_(accumulation) {}

  // One step: forward and backward of `accumulation` micro-batches, reduction, update. Returns this rank's
  // loss, the mean over its micro-batches (scalar, on the device). before_update, if given, runs between
  // reduction and update.
  //
  // Note [Draining]: a rank whose computing fails (out of memory, a bad batch) goes through the rest of the
  // step, and through all steps after it, without computing: every collective still happens, so no rank
  // hangs. failure() then says what it was.
  at::Tensor step(const std::function<Batch()>& next_batch, const std::function<void()>& before_update = {});

  std::exception_ptr failure() const { return failure_; }

 private:
  at::Tensor forward(const Batch& batch);
  void backward(const at::Tensor& loss);
  // Runs compute unless this rank drains, and makes it drain if that throws.
  void attempt(const std::function<void()>& compute);

  Model& model_;
  Strategy& strategy_;
  PhaseClock& clock_;
  int64_t accumulation_;
  std::vector<at::Tensor> inputs_;   // [block]: what it was given, cut off from the graph before it
  std::vector<at::Tensor> outputs_;  // [block]
  std::exception_ptr failure_;
};

}  // namespace shardmark

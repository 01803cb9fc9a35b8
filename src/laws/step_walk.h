// The walk of the training loop (workloads/training_loop.h) with nothing to compute: a strategy's law tells
// at each moment which operations start and which are waited for. Its hooks are those of a Strategy.
#pragma once

#include "laws/program.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

class StepWalk {
 public:
  virtual ~StepWalk() = default;
  Program program(const CostInput& input);

 protected:
  virtual void begin_micro_batch(bool last) = 0;
  virtual void before_forward(size_t block) = 0;
  virtual void before_backward(size_t block) = 0;
  virtual void after_backward(size_t block) = 0;
  virtual void reduce() = 0;
  virtual void sum_squares() = 0;  // for the gradient's norm
  virtual void after_update() = 0;

  Program made_;
};

// Traffic and operations of a step: what its program starts.
void add_operations(Cost& cost, const Program& program);

}  // namespace shardmark::laws

// A strategy says what happens around a block: who holds its parameters, gradients and optimizer state, and
// when they move. It never runs a block. See README.md in this folder for the picture.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "comm/communicator.h"
#include "models/model.h"
#include "optim/optimizer.h"

namespace shardmark {

struct StrategyContext {
  Model& model;
  Communicator& comm;
  Options options;   // resolved
  Choice optimizer;  // resolved
  int64_t accumulation = 1;
  int64_t seed = 1;
};

using ParameterVisitor = std::function<void(const std::string& name, const at::Tensor& value)>;

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Around the blocks of one micro-batch; defaults do nothing. Blocks are numbered in forward order.
  virtual void begin_micro_batch(int64_t index, bool last) = 0;
  virtual void before_forward(int64_t block) { static_cast<void>(block); }
  virtual void after_forward(int64_t block) { static_cast<void>(block); }
  virtual void before_backward(int64_t block) { static_cast<void>(block); }
  virtual void after_backward(int64_t block) { static_cast<void>(block); }

  // After the last micro-batch, in two moments so that they can be timed apart: reduce() waits for what is in
  // flight, then update() runs the optimizer on what this rank owns and clears its gradients.
  virtual void reduce() = 0;
  virtual void update() = 0;

  virtual void set_learning_rate(double lr) = 0;  // of the updates after this

  // What the backward of the loss is seeded with: 1 / (accumulation x ranks that reduce together).
  virtual double gradient_scale() const = 0;

  // Between reduce() and update(): sum of squares of the reduced gradient, over all ranks. Collective; for
  // norms and checks.
  virtual double gradient_squares() = 0;

  // Whether the reduced gradient is less than the sum over ranks, by choice: then no comparison with one
  // device is strict.
  virtual bool lossy() const { return false; }

  // State that must be bit-equal on all ranks between steps; for checks.
  virtual std::vector<at::Tensor> replicated() { return {}; }

  // Whole parameters by name, one after the other, on the CPU of every rank. Collective. The tensor is the
  // visitor's to keep.
  virtual void visit_parameters(const ParameterVisitor& visit) = 0;
};

// Registered by src/strategies/<name>.cpp; its options and costs by src/laws/strategies/<name>.cpp. `make`
// materialises the model: memory, initial values, optimizer. Collective.
struct StrategyEntry {
  std::string description;
  std::unique_ptr<Strategy> (*make)(const StrategyContext& context);
};

inline std::unique_ptr<Strategy> make_strategy(const std::string& name, const StrategyContext& context) {
  return Registry<StrategyEntry>::instance().get(name, "strategy").make(context);
}

}  // namespace shardmark

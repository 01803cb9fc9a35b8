// A strategy says what happens around a block: who holds its parameters, gradients and optimizer state, and
// when they move. It never runs a block. See README.md in this folder for the picture.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "comm/communicator.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "strategies/precision.h"

namespace shardmark {

struct StrategyContext {
  Model& model;
  Communicator& comm;
  Options options;   // resolved
  Choice optimizer;  // resolved
  int64_t accumulation = 1;
  int64_t seed = 1;
  std::optional<Precision> precision = {};  // none: everything in the model's type
  Precision types() const { return precision.value_or(uniform(model.dtype())); }
};

// Note [State]
// What training goes on from: parameters and buffers by their own names, and the optimizer's state as
// "optimizer.exp_avg.<parameter>" and "optimizer.num_updates". Tensors travel whole, one group at a time, so
// that what one strategy wrote any other can read, on any number of ranks. Neither function may throw: the
// other ranks would wait. Ranks that have nothing to do with the tensors give an empty function.
enum class State { weights, all };  // all: the optimizer's too
// The tensor is on the CPU, and the visitor's to keep.
using StateVisitor = std::function<void(const std::string& name, const at::Tensor& value)>;
// The whole tensor of this name, of any floating type; asked for on rank 0 alone.
using StateReader = std::function<at::Tensor(const std::string& name)>;

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
  virtual void update(const UpdateControl& control) = 0;

  virtual void set_learning_rate(double lr) = 0;  // of the updates after this

  // What the backward of the loss is seeded with: 1 / (accumulation x ranks that reduce together).
  virtual double gradient_scale() const = 0;

  // Between reduce() and update(): sum of squares of the reduced gradient, over all ranks. Collective; a
  // double scalar on the device.
  virtual at::Tensor gradient_squares() = 0;

  // Whether the reduced gradient is less than the sum over ranks, by choice: then no comparison with one
  // device is strict.
  virtual bool lossy() const { return false; }

  // State that must be bit-equal on all ranks between steps; for checks.
  virtual std::vector<at::Tensor> replicated() { return {}; }

  // Between steps; Note [State]. Collective. visit: called on each rank that gives one, with rank 0's buffers
  // on rank 0.
  virtual void visit_state(State what, const StateVisitor& visit) = 0;
  virtual void load_state(State what, const StateReader& read) = 0;
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

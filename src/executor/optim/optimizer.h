// Optimizers on flat memory, through torch's fused kernels: one call updates all shards a rank owns.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/optim/gradient_guard.h"
#include "kernels/launcher.h"
#include "schema/choice.h"

namespace shardmark {

// A shard of flat memory: parameters and their gradients, 1-D and equally long. copy: of the parameters in
// the gradients' type, which an update writes by these kernels, zeroing the gradients; undefined: it does
// neither.
struct OptimizerShard {
  at::Tensor parameters;
  at::Tensor gradients;
  at::Tensor copy = {};
  Kernels kernels = {};
};

// A kind of state, "exp_avg" for one: [shard], each as long as its shard.
struct OptimizerState {
  std::string kind;
  std::vector<at::Tensor> shards;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(const UpdateControl& control) = 0;
  virtual void set_learning_rate(double lr) = 0;  // of the steps after this
  // What checkpoints keep, as views: the same kinds on every rank, also where it owns no shard.
  virtual std::vector<OptimizerState> state() const = 0;
  // The updates so far (a scalar, as a view), where they matter to the next one; else undefined.
  virtual at::Tensor num_updates() const { return {}; }
  virtual void parameters_changed() {}  // by others than step()
};

// sgd {lr, momentum, weight_decay} or adamw {lr, beta1, beta2, eps, weight_decay}; a resolved choice. State
// is allocated at once, zeroed, and counted as MemoryUse::optimizer. device: of the shards; a rank may have
// none.
std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                          at::Device device);

// The same with its state in host memory, counted as MemoryUse::offloaded: a step copies the gradients to the
// host, updates there, and copies the parameters back.
std::unique_ptr<Optimizer> make_offloaded_optimizer(const Choice& choice, std::vector<OptimizerShard> shards);

}  // namespace shardmark

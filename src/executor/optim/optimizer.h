// Optimizers on flat memory, by torch's fused kernels: one call updates all shards that a rank owns. Each
// optimizer has a file of its own, which registers an OptimizerEntry.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "device/meter.h"
#include "executor/optim/gradient_guard.h"
#include "kernels/launcher.h"
#include "schema/choice.h"

namespace shardmark {

// A shard of flat memory: parameters and their gradients, 1-D and of equal length. If `copy` is defined (the
// parameters in the gradients' type), an update by `kernels` also writes it and zeroes the gradients.
// Otherwise it does neither.
struct OptimizerShard {
  at::Tensor parameters;
  at::Tensor gradients;
  at::Tensor copy = {};
  Kernels kernels = {};
};

// One kind of optimizer state, such as "exp_avg": [shard], each as long as its shard.
struct OptimizerState {
  std::string kind;
  std::vector<at::Tensor> shards;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(const UpdateControl& control) = 0;
  virtual void set_learning_rate(double lr) = 0;  // from the next step on
  // What checkpoints save, as views. All ranks have the same kinds, even those that own no shard.
  virtual std::vector<OptimizerState> state() const = 0;
  // The number of updates so far, as a view of a scalar, if the next update depends on it; otherwise
  // undefined.
  virtual at::Tensor num_updates() const { return {}; }
  virtual void parameters_changed() {}  // by something other than step()
};

// sgd {lr, momentum, weight_decay} or adamw {lr, beta1, beta2, eps, weight_decay}; the choice must be
// resolved. State is allocated at once, zeroed, and counted as MemoryUse::optimizer. `device` is that of the
// shards, of which a rank may have none.
std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                          at::Device device);

// The same with its state in host memory, counted as MemoryUse::offloaded. A step copies the gradients to the
// host, updates there, and copies the parameters back.
std::unique_ptr<Optimizer> make_offloaded_optimizer(const Choice& choice, std::vector<OptimizerShard> shards);

// An optional argument in the form that torch's fused kernels take.
inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// Registered by src/executor/optim/<name>.cpp. The options are in specs/specs.cpp.
struct OptimizerEntry {
  std::string description;
  std::unique_ptr<Optimizer> (*make)(const Options& options, const std::vector<OptimizerShard>& shards,
                                     at::Device device);
};

// Counts the optimizer's state under the meter's current use.
std::unique_ptr<Optimizer> make_in_scope(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                         at::Device device);

// One state tensor per shard, filled with zeros.
std::vector<at::Tensor> zeros_like_shards(const std::vector<OptimizerShard>& shards);

}  // namespace shardmark

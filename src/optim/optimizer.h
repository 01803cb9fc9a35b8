// Optimizers on flat memory, through torch's fused kernels: one call updates all pieces a rank owns.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optim/gradient_guard.h"
#include "schema/choice.h"

namespace shardmark {

// A piece of flat memory: parameters and their gradients, 1-D and equally long.
struct FlatPiece {
  at::Tensor parameters;
  at::Tensor gradients;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(const UpdateControl& control) = 0;
  virtual void set_learning_rate(double lr) = 0;  // of the steps after this
  // State tensors in a fixed order: [kind][piece], each as long as its piece ("exp_avg" ...). For checkpoints
  // and tests.
  virtual void visit_state(
      const std::function<void(const std::string& kind, size_t piece, at::Tensor&)>& visit) = 0;
};

// sgd {lr, momentum, weight_decay} or adamw {lr, beta1, beta2, eps, weight_decay}; a resolved choice. State
// is allocated at once, zeroed, and counted as MemoryUse::optimizer.
std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, std::vector<FlatPiece> pieces);

}  // namespace shardmark

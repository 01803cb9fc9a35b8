// Looks up an optimizer by its name. Each has a file of its own.
#include "executor/optim/optimizer.h"

#include "base/registry.h"
#include "executor/optim/entry.h"

namespace shardmark {

std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                          at::Device device) {
  const meter::Scope scope(MemoryUse::optimizer);
  return make_in_scope(choice, shards, device);
}

std::unique_ptr<Optimizer> make_in_scope(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                         at::Device device) {
  return Registry<OptimizerEntry>::instance()
      .get(choice.name, "optimizer")
      .make(choice.options, shards, device);
}

std::vector<at::Tensor> zeros_like_shards(const std::vector<OptimizerShard>& shards) {
  std::vector<at::Tensor> state;
  for (const auto& shard : shards) state.push_back(at::zeros_like(shard.parameters));
  return state;
}

}  // namespace shardmark

// What an optimizer's file registers, and what optimizers share.
#pragma once

#include "device/meter.h"
#include "executor/optim/optimizer.h"

namespace shardmark {

// As torch's fused kernels take what may be absent.
inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// Registered by src/executor/optim/<name>.cpp; its options are in specs/specs.cpp.
struct OptimizerEntry {
  std::string description;
  std::unique_ptr<Optimizer> (*make)(const Options& options, const std::vector<OptimizerShard>& shards,
                                     at::Device device);
};

// Its state counts as the meter's current use.
std::unique_ptr<Optimizer> make_in_scope(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                         at::Device device);

// One zeroed state tensor per shard.
std::vector<at::Tensor> zeros_like_shards(const std::vector<OptimizerShard>& shards);

}  // namespace shardmark

// What the file of an optimizer registers, and what optimizers share.
#pragma once

#include "device/meter.h"
#include "executor/optim/optimizer.h"

namespace shardmark {

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

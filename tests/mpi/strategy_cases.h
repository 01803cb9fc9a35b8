// The strategies, models and optimizers that tests train, on CPUs and on GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"
#include "strategies/strategy.h"

namespace shardmark {

// One strategy of each kind, for properties that do not depend on options.
inline const std::vector<std::string> kKinds = {"ddp", "fsdp", "fsdp(shard=gradients)",
                                                "fsdp(shard=optimizer)", "zero3"};

// Returns all strategies of the registry with their default options, and these variants.
inline std::vector<std::string> all_strategies(int64_t ranks) {
  std::vector<std::string> all = {"fsdp(shard=gradients)",
                                  "fsdp(shard=optimizer)",
                                  "fsdp(prefetch=0)",
                                  "fsdp(prefetch=3)",
                                  "zero3(prefetch=0)",
                                  "zero3(prefetch=2)",
                                  "ddp(bucket_mb=0.01, first_bucket_mb=0.001)"};
  all.insert(all.end(), {"fsdp(layout=dim0)", "fsdp(layout=dim0, shard=gradients)",
                         "fsdp(layout=dim0, shard=optimizer)", "fsdp(offload=optimizer)",
                         "zero3(evenness=count)", "zero3(persistence=30, offload=optimizer)"});
  if (ranks % 2 == 0)
    all.insert(all.end(), {"fsdp(group=2)", "fsdp(group=1)", "fsdp(group=2, shard=optimizer)",
                           "fsdp(group=2, layout=dim0)", "hpz(group=2)", "hpz(group=1, prefetch=3)"});
  for (const auto& [name, entry] : Registry<strategies::Strategy>::instance().entries())
    if (name != "single") all.push_back(name);
  return all;
}

// The shapes are not divisible by any number of ranks. AdamW's eps is so large that rounding errors in tiny
// gradients are not amplified.
inline const std::vector<std::string> kModels = {
    "mlp(features=13, width=19, layers=3, classes=5)",
    "gpt2(layers=2, width=24, heads=3, sequence=11, vocabulary=37)",
    "resnet(layers=20, width=3, image=9, batch_norm=sync)",
    "resnet(layers=20, width=3, image=9, batch_norm=frozen)",
    "llama(layers=2, width=24, heads=6, kv_heads=2, inner=20, sequence=11, vocabulary=37)",
    "moe(layers=2, width=24, heads=2, kv_heads=1, inner=20, sequence=11, vocabulary=37, experts=3, top_k=2)",
};
inline const std::vector<std::string> kOptimizers = {"sgd(lr=0.05, momentum=0.9, weight_decay=0.01)",
                                                     "adamw(lr=0.001, eps=1e-5, weight_decay=0.1)"};

}  // namespace shardmark

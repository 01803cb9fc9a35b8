// Flags over the axes of a suite.
#include "cli/overrides.h"

namespace shardmark {

void add_override_flags(CLI::App& command, Overrides& overrides) {
  const std::string group = "Instead of what the suite says";
  command.add_option("--ranks,--gpus", overrides.ranks, "rank counts: 1 2 4 8")->group(group);
  command.add_option("--strategies", overrides.strategies, "such as ddp zero3 \"fsdp(shard=gradients)\"")
      ->group(group);
  command.add_option("--models", overrides.models, "such as gpt2 \"resnet(layers=34)\"")->group(group);
  command.add_option("--batch-sizes", overrides.batch_sizes, "per rank, of weak-scaling blocks: 32 64 128")
      ->group(group);
  command.add_option("--optimizers", overrides.optimizers, "such as sgd \"adamw(lr=1e-5)\"")->group(group);
  command.add_option("--precisions", overrides.precisions, "such as fp32 bf16")->group(group);
  command.add_option("--steps", overrides.steps, "timed steps of every point")->group(group);
  command.add_option("--repeats", overrides.repeats, "how often every point is measured")->group(group);
  command.add_option("--seed", overrides.seed, "of initial values, data and order")->group(group);
  command.add_option("--time-limit", overrides.time_limit_s, "seconds of timed steps per point")
      ->group(group);
  command.add_option("--duration", overrides.duration, "sustained runs: every point goes on for so long, 2h")
      ->group(group);
}

}  // namespace shardmark

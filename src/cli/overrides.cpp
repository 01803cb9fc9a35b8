// Flags over the axes of a suite.
#include "cli/overrides.h"

#include "cli/values.h"
#include "laws/vocabulary.h"
#include "plan/read_axis.h"

namespace shardmark {

void add_override_flags(CLI::App& command, Overrides& overrides) {
  const std::string group = "Overrides of the suite";
  add_value(command, "--ranks,--gpus", overrides.ranks, values::kRanks, "rank counts: 1 2 4 8")->group(group);
  command.add_option("--strategies", overrides.strategies, "such as ddp zero3 \"fsdp(shard=gradients)\"")
      ->group(group);
  command.add_option("--models", overrides.models, "such as gpt2 \"resnet(layers=34)\"")->group(group);
  add_value(command, "--batch-sizes", overrides.batch_sizes, values::kBatch,
            "per rank, of weak-scaling blocks: 32 64 128")
      ->group(group);
  command.add_option("--optimizers", overrides.optimizers, "such as sgd \"adamw(lr=1e-5)\"")->group(group);
  add_value(command, "--precisions", overrides.precisions, Word{names_of(laws::precision_laws())},
            "such as fp32 bf16")
      ->group(group);
  add_value(command, "--steps", overrides.steps, values::kSteps, "timed steps of each point")->group(group);
  add_value(command, "--repeats", overrides.repeats, values::kRepeats,
            "how many times each point is measured")
      ->group(group);
  add_value(command, "--seed", overrides.seed, values::kSeed,
            "seed of the initial weights, the data and the order of points")
      ->group(group);
  add_value(command, "--time-limit", overrides.time_limit_s, values::kTimeLimit,
            "time limit of the timed steps of each point, in seconds")
      ->group(group);
  add_value(command, "--duration", overrides.duration_s, values::kDuration,
            "sustained runs: how long each point runs, such as 2h")
      ->group(group);
}

}  // namespace shardmark

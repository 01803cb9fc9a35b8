// Each key of the file to the flag that means the same.
#include "cli/run/train_file.h"

#include "cli/run/train_flags.h"
#include "plan/training_run.h"

namespace shardmark {

void read_train_file(const std::string& path, TrainFlags& flags) {
  flags.file = path;
  const TrainingRun run = read_training_run(path);
  flags.file_text = run.text;
  const auto choose = [](std::string& flag, const std::optional<Choice>& choice) {
    if (choice) flag = to_text(*choice);
  };
  const auto set = [](auto& flag, const auto& value) {
    if (value) flag = *value;
  };
  choose(flags.model, run.model);
  choose(flags.data, run.data);
  choose(flags.strategy, run.strategy);
  choose(flags.optimizer, run.optimizer);
  choose(flags.schedule, run.schedule);
  set(flags.precision, run.precision);
  set(flags.reduce_dtype, run.reduce_dtype);
  set(flags.world.transport, run.transport);
  set(flags.clip, run.clip_norm);
  set(flags.recompute, run.checkpointing);
  set(flags.accumulation, run.accumulation);
  set(flags.batch_size, run.batch_size);
  set(flags.global_batch, run.global_batch);
  set(flags.steps, run.steps);
  set(flags.epochs, run.epochs);
  set(flags.warmup, run.warmup);
  set(flags.seed, run.seed);
  set(flags.log_every, run.log_every);
  set(flags.eval_every, run.eval_every);
  set(flags.eval_batches, run.eval_batches);
  set(flags.memory_limit_bytes, run.memory_limit_bytes);
}

}  // namespace shardmark

// Each key of the file to the flag that means the same.

#include <filesystem>

#include "cli/run/train_flags.h"
#include "plan/training_run.h"

namespace shardmark {

void read_train_file(const std::string& path, TrainFlags& flags) {
  flags.file = path;
  flags.point.folder = std::filesystem::path(path).parent_path();
  const TrainingRun run = read_training_run(path);
  flags.file_text = run.text;
  const auto set = [](auto& flag, const auto& value) {
    if (value) flag = *value;
  };
  for (const auto& [key, value] : run.axes) {
    if (key == "transport")
      flags.world.transport = std::get<std::string>(value);
    else if (key == "batch_size")
      flags.batch_size = std::get<int64_t>(value);
    else if (key == "global_batch")
      flags.global_batch = std::get<int64_t>(value);
    else if (const auto* choice = std::get_if<Choice>(&value))
      flags.choices[key] = to_text(*choice);
    else
      set_value(axis_named(key), value, flags.point);
  }
  if (run.schedule) flags.schedule = to_text(*run.schedule);
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

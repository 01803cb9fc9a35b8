// From flags to a point and its run.
#include "cli/run/train_flags.h"

#include <algorithm>

#include "cli/axis_flags.h"
#include "plan/choice_axis.h"
#include "plan/plan.h"
#include "schema/json.h"
#include "specs/rate_schedules.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr int64_t kBatchSize = 4, kSteps = 100;  // where nothing else says

Choice optimizer_of(const TrainFlags& flags, int ranks) {
  Choice choice = choice_from_text(flags.choices.at("optimizer"));
  const auto set = [&](const char* key, const std::optional<double>& value) {
    if (value) choice.options[key] = *value;
  };
  set("lr", flags.lr);
  set("momentum", flags.momentum);
  set("weight_decay", flags.weight_decay);
  set("beta1", flags.beta1);
  set("beta2", flags.beta2);
  set("eps", flags.eps);
  choice = choice_from_flag(to_text(choice), "--optimizer", optimizer_kind());
  // The linear scaling rule. Source: Goyal et al. 2017, Accurate, Large Minibatch SGD.
  if (flags.scale_lr) choice.options["lr"] = choice.options["lr"].get<double>() * ranks;
  return choice;
}

int64_t batch_size_of(const TrainFlags& flags, int ranks, std::optional<int64_t> global_batch) {
  const int64_t accumulation = flags.point.training.accumulation, parts = ranks * accumulation;
  if (flags.batch_size) return *flags.batch_size;  // compared with the checkpoint's later
  const std::string whose = flags.global_batch ? flags.file + " asks for " : "the checkpoint's run took ";
  if (flags.global_batch) global_batch = flags.global_batch;
  if (!global_batch) return kBatchSize;
  if (*global_batch % parts != 0)
    throw UsageError(whose + std::to_string(*global_batch) + " samples a step, which " +
                     std::to_string(ranks) + " ranks with --accumulation " + std::to_string(accumulation) +
                     " cannot share evenly; choose ranks and accumulation that divide it");
  return *global_batch / parts;
}

// The last step of an epoch may reach into the next one: data/order/sampler.h.
int64_t num_steps(const TrainFlags& flags, const Point& point, const DataSource& source) {
  if (!flags.epochs) return flags.steps.value_or(kSteps);
  int64_t samples = 0;
  if (__builtin_mul_overflow(*flags.epochs, source.size(), &samples))
    throw UsageError("--epochs " + std::to_string(*flags.epochs) + ": more samples than can be counted");
  return (samples - 1) / point.global_batch() + 1;
}

// What a run that goes on may have otherwise than before.
nlohmann::ordered_json settings_of(const TrainingPoint& t, const Choice& schedule, int64_t warmup,
                                   int64_t steps) {
  nlohmann::ordered_json settings = {{"precision", t.precision},
                                     {"reduce_dtype", t.reduce_dtype},
                                     {"clip_norm", t.clip_norm},
                                     {"schedule", to_text(schedule)},
                                     {"warmup", warmup}};
  for (const auto& [key, value] : t.optimizer.options) settings[key] = to_json(value);
  if (specs::rate_schedules().at(schedule.name).by_length)
    settings["the schedule's horizon"] = std::to_string(steps) + " steps";
  return settings;
}

// "--reduce-dtype" of reduce_dtype, where the row says nothing else.
std::string flag_of(const AxisRow& axis) {
  if (axis.train_flag != nullptr) return axis.train_flag;
  std::string flag = std::string("--") + axis.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void add_file(CLI::App& app, TrainFlags& flags) {
  app.add_option_function<std::string>(
      "file",
      [&flags](const std::string& path) {
        try {
          read_train_file(path, flags);
        } catch (const UsageError&) {
          flags.file_error = std::current_exception();
        }
      },
      "a training run in YAML, such as suites/train/gpt2.yaml; flags override it");
}

void add_training(CLI::App& app, TrainFlags& flags) {
  const std::string what = "What trains";
  for (const AxisRow& axis : kTrainingAxes) {
    if (axis.scaling != nullptr) continue;
    auto* flag = visit_member(axis, flags.point, [&]<class T>(T& member) {
      if constexpr (!std::is_same_v<T, Choice>) {
        return add_axis(app, flag_of(axis), member, axis);
      } else {
        const char* const text = axis.default_choice == nullptr ? "" : axis.default_choice;
        return add_axis(app, flag_of(axis), flags.choices.try_emplace(axis.key, text).first->second, axis);
      }
    });
    flag->capture_default_str()->group(what);
  }
  add_value(app, "--batch-size", flags.batch_size, values::kBatch,
            "samples per rank and micro-batch (default: 4, or what keeps the checkpoint's global batch)")
      ->group(what);
  auto* steps = takes(app.add_option_function<int64_t>(
                          "--steps",
                          [&flags](int64_t count) {
                            flags.epochs.reset();
                            flags.steps = count;
                          },
                          "steps of the whole run, including those before --resume (default: 100)"),
                      values::kSteps)
                    ->group(what);
  takes(app.add_option_function<int64_t>(
            "--epochs",
            [&flags](int64_t count) {
              flags.steps.reset();
              flags.epochs = count;
            },
            "instead of --steps: passes over the samples to train on"),
        values::kSteps)
      ->excludes(steps)
      ->group(what);
  add_value(app, "--seed", flags.seed, values::kSeed, "seed of the initial weights and the data")
      ->capture_default_str()
      ->group(what);
  app.add_flag("--deterministic", flags.deterministic,
               "use only algorithms that give the same bits in every run")
      ->group(what);
}

void add_optimizer(CLI::App& app, TrainFlags& flags) {
  const std::string rate = "Optimizer and learning rate";
  add_value(app, "--lr", flags.lr, values::kNumber, "peak learning rate (default: the optimizer's)")
      ->group(rate);
  add_value(app, "--momentum", flags.momentum, values::kNumber, "momentum of sgd")->group(rate);
  add_value(app, "--weight-decay,--weight_decay", flags.weight_decay, values::kNumber,
            "weight decay of the optimizer")
      ->group(rate);
  add_value(app, "--beta1", flags.beta1, values::kNumber, "beta1 of adamw")->group(rate);
  add_value(app, "--beta2", flags.beta2, values::kNumber, "beta2 of adamw")->group(rate);
  add_value(app, "--eps", flags.eps, values::kNumber, "epsilon of adamw")->group(rate);
  app.add_option("--schedule", flags.schedule,
                 "constant, \"cosine(end=0.1)\", \"step(every=30, factor=0.1)\"")
      ->capture_default_str()
      ->group(rate);
  add_value(app, "--warmup", flags.warmup, values::kStepsOrNone, "steps of linear warm-up")
      ->capture_default_str()
      ->group(rate);
  app.add_flag("--scale-lr", flags.scale_lr, "the linear scaling rule: rate x ranks")->group(rate);
}

void add_results(CLI::App& app, TrainFlags& flags) {
  const std::string results = "Results";
  add_value(app, "--log-every", flags.log_every, values::kSteps, "log every this many steps")
      ->capture_default_str()
      ->group(results);
  add_value(app, "--eval-every", flags.eval_every, values::kStepsOrNone,
            "steps between two evaluations; 0: at the end only")
      ->capture_default_str()
      ->group(results);
  add_value(app, "--eval-batches", flags.eval_batches, values::kStepsOrNone,
            "most batches that each rank evaluates, the first ones held out; 0: no evaluation (default: all)")
      ->group(results);
  app.add_option("-o,--output", flags.output, "study to write, such as results/run.h5")->group(results);
  app.add_option("--checkpoint", flags.checkpoint, "directory of checkpoints; the last two are kept")
      ->group(results);
  add_value(app, "--checkpoint-every", flags.checkpoint_every, values::kStepsOrNone,
            "steps between two checkpoints; 0: at the end only")
      ->capture_default_str()
      ->group(results);
  app.add_flag(
         "--resume", flags.resume,
         "continue from the newest checkpoint, with any strategy and on any number of ranks, and with the "
         "study of -o")
      ->group(results);
  app.add_option("--weights", flags.weights,
                 "start from the weights in this safetensors file; GPT-2's have Hugging Face's names")
      ->group(results);
  app.add_option("--save-weights", flags.save_weights, "safetensors file to write at the end")
      ->group(results);
  app.add_option(
         "--trace", flags.trace,
         "directory for traces, for Perfetto or chrome://tracing: three steps of all ranks, instruction by "
         "instruction (steps.json), and three of each rank by operators, GPU kernels and memory (rank-0.json "
         "...)")
      ->group(results);
  app.add_flag("--overwrite", flags.overwrite,
               "with --save-weights and --trace: replace files that are there already")
      ->group(results);
}

}  // namespace

void add_train_flags(CLI::App& app, TrainFlags& flags) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // scripts add to a command
  add_file(app, flags);  // first: CLI11 takes options in this order, so that flags go over the file
  add_training(app, flags);
  add_optimizer(app, flags);
  add_results(app, flags);
  add_value(
      app, "--memory-limit", flags.memory_limit_bytes, values::kMemory,
      "memory limit of a rank, such as 8GiB (default: 0.8 of the node's memory / its ranks, or of the GPU)");
  add_world_flags(app, flags.world);
}

void check_train_flags(const TrainFlags& flags) {
  if (flags.file_error) std::rethrow_exception(flags.file_error);
  if (flags.choices.at("model").empty())
    throw UsageError("a training run needs --model, or a file that names one (suites/train/ holds examples)");
  if (flags.checkpoint.empty() && (flags.resume || flags.checkpoint_every > 0))
    throw UsageError("--resume and --checkpoint-every need --checkpoint DIR");
  if (flags.overwrite && flags.save_weights.empty() && flags.trace.empty())
    throw UsageError(
        "--overwrite needs --save-weights or --trace: a study is not overwritten, name another with -o");
}

Point train_point(const TrainFlags& flags, int ranks, const std::string& transport,
                  std::optional<int64_t> global_batch) {
  Point point = flags.point;
  point.workload = "train";
  point.ranks = ranks;
  point.transport = transport;
  point.seed = flags.seed;
  for (const auto& [key, text] : flags.choices)
    set_value(axis_named(key), choice_from_flag(text, "--" + key, kind_of(key)), point);
  TrainingPoint& t = point.training;
  t.optimizer = optimizer_of(flags, ranks);
  t.batch_size = batch_size_of(flags, ranks, global_batch);
  if (t.strategy.name == "single" && ranks > 1)
    throw UsageError("--strategy single on " + std::to_string(ranks) +
                     " ranks would train as many models; start one rank, or choose ddp, fsdp or zero3");
  if (const std::string reason = strategy_reason(point); !reason.empty())
    throw UsageError("--strategy: " + reason);
  return point;
}

TrainingOptions run_options(const TrainFlags& flags, const Point& point, const DataSource& source) {
  const auto& t = point.training;
  const int64_t steps = num_steps(flags, point, source);
  const Choice schedule = choice_from_flag(flags.schedule, "--schedule", schedule_kind());
  return {.point = point,
          .schedule = RateSchedule(schedule, t.optimizer.options.at("lr").get<double>(), flags.warmup, steps),
          .num_steps = steps,
          .log_every = flags.log_every,
          .evaluate_every = flags.eval_every,
          .evaluate_batches = flags.eval_batches.value_or(std::numeric_limits<int64_t>::max()),
          .checkpoint_directory = flags.checkpoint,
          .checkpoint_every = flags.checkpoint_every,
          .save_weights = flags.save_weights,
          .trace_directory = flags.trace,
          .identity = {to_text(t.model), to_text(t.data), t.optimizer.name,
                       specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options),
                       point.seed, point.global_batch(), source.size(),
                       /*content=*/{}, settings_of(t, schedule, flags.warmup, steps)}};
}

}  // namespace shardmark

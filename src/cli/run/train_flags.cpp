// Turns the flags of train, and the file of the run, into a point and the options of its run.
#include "cli/run/train_flags.h"

#include <filesystem>

#include "cli/axis_flags.h"
#include "plan/choice_axis.h"
#include "plan/effects.h"
#include "plan/plan.h"
#include "schema/json.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr int64_t kBatchSize = 4, kSteps = 100;  // defaults if nothing else gives them

Choice optimizer_of(const TrainFlags& flags, int64_t copies) {
  Choice choice = choice_from_text(flags.choices.at("optimizer"));
  for (const auto& [key, value] : flags.of_optimizer) choice.options[key] = value;
  choice = choice_from_flag(to_text(choice), "--optimizer", optimizer_kind());
  // The linear scaling rule. Source: Goyal et al. 2017, Accurate, Large Minibatch SGD.
  if (flags.scale_lr) choice.options["lr"] = choice.options["lr"].get<double>() * static_cast<double>(copies);
  return choice;
}

int64_t batch_size_of(const TrainFlags& flags, int64_t ranks, std::optional<int64_t> global_batch) {
  const int64_t accumulation = flags.point.training.accumulation, parts = ranks * accumulation;
  if (flags.batch_size) return *flags.batch_size;  // compared with the checkpoint later
  const std::string whose = flags.global_batch ? "--global-batch asks for " : "the checkpoint's run took ";
  if (flags.global_batch) global_batch = flags.global_batch;
  if (!global_batch) return kBatchSize;
  if (*global_batch % parts != 0)
    throw UsageError(whose + std::to_string(*global_batch) + " samples a step, which " +
                     std::to_string(ranks) + " ranks with accumulation " + std::to_string(accumulation) +
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

// The settings that a resumed run may change.
nlohmann::ordered_json settings_of(const TrainingPoint& t, const Choice& schedule, int64_t warmup,
                                   int64_t steps) {
  nlohmann::ordered_json settings = {{"precision", t.precision},       {"products", to_text(t.products)},
                                     {"reduce_dtype", t.reduce_dtype}, {"clip_norm", t.clip_norm},
                                     {"schedule", to_text(schedule)},  {"warmup", warmup}};
  for (const auto& [key, value] : t.optimizer.options) settings[key] = to_json(value);
  if (specs::lr_scheduler_specs().at(schedule.name).by_length)
    settings["the schedule's horizon"] = std::to_string(steps) + " steps";
  return settings;
}

// Takes the values of axes that a file or --set gives.
void take_axes(const std::map<std::string, AxisValue>& axes, TrainFlags& flags) {
  for (const auto& [key, value] : axes) {
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
}

// Reads the file before any flag, so that flags override it.
void read_file(const std::string& path, TrainFlags& flags) {
  static_cast<TrainingRun&>(flags) = read_training_run(path);
  flags.point.folder = std::filesystem::path(path).parent_path();
  take_axes(flags.axes, flags);
}

void add_file(CLI::App& app, TrainFlags& flags) {
  app.add_option_function<std::string>(
      "file",
      [&flags](const std::string& path) {
        try {
          read_file(path, flags);
        } catch (const UsageError&) {
          flags.file_error = std::current_exception();
        }
      },
      "a training run in YAML, such as suites/train/gpt2.yaml; flags override it");
}

// Adds the option of a setting; its kind follows from the type of the member.
CLI::Option* add_knob(CLI::App& app, const Knob& knob, TrainingRun& run) {
  return visit_knob(knob, run, [&]<class T>(T& member, const auto& kind) -> CLI::Option* {
    if constexpr (std::is_same_v<T, bool>)
      return app.add_flag(knob.flag, member, knob.help);
    else if constexpr (std::is_same_v<T, std::string>)
      return app.add_option(knob.flag, member, knob.help)->capture_default_str();
    else if constexpr (std::is_same_v<T, int64_t>)
      return add_value(app, knob.flag, member, kind, knob.help)->capture_default_str();
    else if constexpr (std::is_same_v<T, std::optional<int64_t>>)
      return add_value(app, knob.flag, member, kind, knob.help);
    else
      return takes(app.add_option_function<double>(
                       knob.flag, [&member](double value) { member["lr"] = value; }, knob.help),
                   kind);
  });
}

}  // namespace

void add_train_flags(CLI::App& app, TrainFlags& flags) {
  // The last value of a repeated flag counts, so that scripts may append flags to a command.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // First, because CLI11 handles options in this order, so that flags override the file.
  add_file(app, flags);
  // `places` has the place in the file of each key. A flag that replaces the key removes its place, so that
  // errors about the value name the flag and not the file.
  const auto goes_over_file = [&flags](CLI::Option* option, const std::string& key) {
    return option->each([&flags, key](const std::string&) { flags.places.erase(key); });
  };
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.scaling == nullptr && axis.flag != nullptr)
      goes_over_file(add_axis_of(app, axis, flags.point, flags.choices), axis.key)
          ->group(kKnobs.front().group);
  for (const Knob& knob : kKnobs) {
    if (knob.flag == nullptr) continue;
    CLI::Option* const option = add_knob(app, knob, flags)->group(knob.group);
    if (knob.key != nullptr) goes_over_file(option, knob.key);
  }
  // Each of two alternatives also overrides the other one if that is in the file.
  app.get_option("--steps")->each([&flags](const std::string&) { flags.epochs.reset(); });
  app.get_option("--epochs")->excludes("--steps")->each([&flags](const std::string&) {
    flags.steps.reset();
  });
  const auto replaces_batch = [&flags](std::optional<int64_t> TrainFlags::*other) {
    return [&flags, other](const std::string&) {
      (flags.*other).reset();
      flags.places.erase("batch_size");
      flags.places.erase("global_batch");
    };
  };
  app.get_option("--batch-size")->each(replaces_batch(&TrainFlags::global_batch));
  app.get_option("--global-batch")->excludes("--batch-size")->each(replaces_batch(&TrainFlags::batch_size));
  add_world_flags(app, flags.world);
  // Last, so that it goes over the file and over flags.
  offer(
      app.add_option_function<std::vector<std::string>>(
             "--set", [&flags](const auto& texts) { take_axes(take_typed(texts, flags), flags); },
             "any other key of the file, as KEY=VALUE: accumulation=4 clip_norm=1 warmup=100 eval_batches=8 "
             "(a key that it does not know lists all)")
          ->take_all()
          ->group(kKnobs.front().group),
      {});
}

void check_train_flags(const TrainFlags& flags) {
  if (flags.file_error) std::rethrow_exception(flags.file_error);
  if (flags.choices.at("model").empty())
    throw UsageError("a training run needs --model, or a file that names one (suites/train/ holds examples)");
  if (flags.checkpoint.empty() && (flags.resume || flags.checkpoint_every > 0))
    throw UsageError("--resume and --checkpoint-every need --checkpoint DIR");
}

Point train_point(const TrainFlags& flags, int ranks, const std::string& transport,
                  std::optional<int64_t> global_batch) {
  Point point = flags.point;
  point.workload = "train";
  point.ranks = ranks;
  point.transport = transport;
  point.seed = flags.seed;
  for (const auto& [key, text] : flags.choices)
    set_value(axis_named(key), choice_from_flag(text, flag_of(axis_named(key)), kind_of(key)), point);
  TrainingPoint& t = point.training;
  t.optimizer = optimizer_of(flags, point.data_ranks());
  t.batch_size = batch_size_of(flags, std::max<int64_t>(point.data_ranks(), 1), global_batch);
  refuse_idle_values(point, [&](const AxisRow& axis) {
    return flags.places.contains(axis.key) ? std::string(axis.key) : flag_of(axis);
  });
  if (const std::string reason = strategies::layout_impossible(point); !reason.empty())
    throw UsageError(reason);
  if (t.strategy.name == "single" && point.data_ranks() > 1)
    throw UsageError("--strategy single on " + std::to_string(ranks) +
                     " ranks would train as many models; start one rank, or choose ddp, fsdp or zero3");
  if (const std::string reason = strategy_reason(point); !reason.empty())
    throw UsageError("--strategy: " + reason);
  return point;
}

TrainingOptions run_options(const TrainFlags& flags, const Point& point, const DataSource& source) {
  const auto& t = point.training;
  const int64_t steps = num_steps(flags, point, source);
  const Choice schedule = choice_from_flag(flags.schedule, "--schedule", lr_scheduler_kind());
  if (t.graph && (schedule.name != "constant" || flags.warmup > 0))
    throw UsageError("a graph has one learning rate; take --schedule constant and warmup 0, or graph false");
  return {.point = point,
          .schedule = LRScheduler(schedule, t.optimizer.options.at("lr").get<double>(), flags.warmup, steps),
          .num_steps = steps,
          .run = static_cast<const TrainingRun&>(flags),
          .identity = {to_text(t.model), to_text(t.data), t.optimizer.name,
                       specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options),
                       point.seed, point.global_batch(), source.size(),
                       /*content=*/{}, settings_of(t, schedule, flags.warmup, steps)}};
}

}  // namespace shardmark

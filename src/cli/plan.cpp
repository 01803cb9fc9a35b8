// shardmark plan: prints the points of a suite with their expected cost. Needs no MPI, LibTorch or GPU.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/axis_flags.h"
#include "cli/command.h"
#include "cli/find_suite.h"
#include "cli/overrides.h"
#include "cli/plan_tables.h"
#include "cli/table_output.h"
#include "data/files/token_files.h"
#include "plan/choice_axis.h"
#include "plan/effects.h"
#include "plan/starts.h"
#include "specs/specs.h"
#include "strategies/pipeline_drawing.h"
#include "strategies/program_text.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr Whole kRank{0, values::kRanks.most - 1};

constexpr const char* kModelOfStep = "gpt2";
// What a step has one value of, by a flag that also replaces an axis of a suite, or by --set.
const std::set<std::string>& axes_of_step() {
  static const std::set<std::string> axes =
      with_layout_axes({"model", "precision", "reduce_dtype", "accumulation", "clip_norm", "checkpointing"});
  return axes;
}

// Options of --step, which prints one step of a strategy, instruction by instruction, instead of a suite.
struct StepOptions {
  std::string strategy;
  int64_t rank = 0;
};

struct PlanOptions {
  std::string suite;
  StepOptions step;
  int64_t ranks = 0;
  int64_t memory_bytes = 0;  // 0: unknown
  TableOutput output;
  Overrides overrides;
};

// Without -n, the number of ranks is that of the suite's largest point, so that it rules nothing out.
World world_for(const PlanOptions& options, const Suite& suite) {
  World world{options.ranks, options.memory_bytes};
  if (world.ranks == 0)
    for (const auto& point : suite.points) world.ranks = std::max({world.ranks, point.ranks, int64_t{1}});
  return world;
}

// For suites whose points need different settings: how many times ranks are started, and with which settings.
std::vector<std::string> starts_text(const std::vector<Point>& plan) {
  const std::vector<std::string> settings = settings_of(plan);
  if (settings.size() == 1 && settings.front().empty()) return {};
  const size_t num_starts = starts_of(plan).size(), num_repeats = num_starts / settings.size();
  std::vector<std::string> lines = {
      fmt::format("{} start{} of the ranks, {} for each setting{}, by launch or submit:", num_starts,
                  num_starts == 1 ? "" : "s", num_repeats == 1 ? "one" : std::to_string(num_repeats),
                  num_repeats == 1 ? "" : ", which take turns")};
  for (const std::string& setting : settings) {
    const auto count = std::count_if(plan.begin(), plan.end(),
                                     [&](const Point& point) { return point.environment == setting; });
    lines.push_back(fmt::format("  {:<60} {} point{}", setting.empty() ? "nothing set" : setting, count,
                                count == 1 ? "" : "s"));
  }
  return lines;
}

std::string totals_text(const Suite& suite, const World& world, const PlanTotals& totals) {
  std::string text =
      fmt::format("{} on {} rank{}: {} point{}{}", suite.name, world.ranks, world.ranks == 1 ? "" : "s",
                  totals.num_points, totals.num_points == 1 ? "" : "s",
                  suite.repeats > 1 ? fmt::format(" ({} repeats included)", suite.repeats) : "");
  if (totals.num_impossible > 0) text += fmt::format(", {} of them impossible", totals.num_impossible);
  text += fmt::format("; at most {} of timed steps, set-up and warm-up aside",
                      format_seconds(totals.time_limit_s));
  if (totals.most_bytes > 0) text += fmt::format("; at most {} per rank", format_bytes(totals.most_bytes));
  return text;
}

// The reason for which a run on GPUs would refuse the memory limit; the tables hold for CPUs anyway.
std::string gpu_note(const Suite& suite, const World& world) {
  const std::string of_suite = gpu_memory_reason(suite.memory_limit_bytes);
  return of_suite.empty() ? gpu_memory_reason(world.memory_per_rank_bytes) : of_suite;
}

std::string json_text(const Suite& suite, const World& world, const std::vector<Table>& tables,
                      const PlanTotals& totals, size_t num_starts) {
  nlohmann::ordered_json document = {{"suite", suite.name},
                                     {"world_ranks", world.ranks},
                                     {"num_points", totals.num_points},
                                     {"num_impossible", totals.num_impossible},
                                     {"num_starts", num_starts},
                                     {"time_limit_s", totals.time_limit_s},
                                     {"most_bytes", totals.most_bytes},
                                     {"tables", nlohmann::ordered_json::array()}};
  if (const std::string note = gpu_note(suite, world); !note.empty()) document["note"] = note;
  for (const auto& table : tables) document["tables"].push_back(to_json(table));
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// File patterns of the point's data that match no file.
std::vector<std::string> missing_files(const Point& point) {
  const Choice& data = point.training.data;
  std::vector<std::string> missing;
  std::istringstream patterns(specs::data_specs().at(data.name).files(data.options));
  for (std::string pattern; patterns >> pattern;)
    if (glob_near(point.folder, pattern).empty())
      missing.push_back(fmt::format("data {}: no file matches {} from {}{}", to_text(data),
                                    quoted_line(pattern), fs::current_path().string(),
                                    point.folder.empty() ? "" : " or " + point.folder));
  return missing;
}

// Data that a run on this machine could not load: missing files, and damaged token files. Each source is
// examined once for each vocabulary, because the tokens of a file must lie in it. A warning that several
// points share is given once.
std::vector<std::string> data_warnings(const std::vector<Point>& plan) {
  std::set<std::string> seen;
  std::vector<std::string> warnings;
  for (const Point& point : plan) {
    if (point.workload != "training" || !point.impossible.empty()) continue;
    const Choice& data = point.training.data;
    const specs::SampleShape sample = specs::model_table(point.training.model)->sample;
    if (!seen.insert(fmt::format("{} {}", to_text(data), sample.num_classes)).second) continue;
    std::vector<std::string> troubles = missing_files(point);
    if (troubles.empty() && data.name == "tokens") try {
        open_token_files(data.options, sample.num_classes, point.folder);
      } catch (const UsageError& error) {
        troubles.emplace_back(error.what());
      }
    for (const std::string& trouble : troubles)
      if (seen.insert(trouble).second) warnings.push_back(trouble + "; a run here would be refused");
  }
  return warnings;
}

int print_plan(const PlanOptions& options) {
  const Suite suite = read_suite(find_suite(options.suite), options.overrides);
  for (const std::string& warning : suite.warnings) log_warning(warning);
  const World world = world_for(options, suite);
  std::vector<std::string> notes;
  const auto plan = make_plan(suite, world, &notes);
  for (const std::string& note : notes) log_warning(suite.path + ": " + note);
  for (const std::string& warning : data_warnings(plan)) log_warning(warning);
  const int64_t limit =
      world.memory_per_rank_bytes > 0 ? world.memory_per_rank_bytes : suite.memory_limit_bytes;
  const Expectations expected = expect_all(plan);
  auto tables = plan_tables(plan, expected, world, limit);
  const auto totals = plan_totals(plan, expected);
  const std::string note = gpu_note(suite, world);
  // There are three forms of output: one JSON document, the first screen, or the tables that flags ask for.
  if (options.output.json) {
    keep_only(tables, options.output.only);
    print_data(json_text(suite, world, tables, totals, starts_of(plan).size()));
  } else if (options.output.is_default()) {
    Overview overview = plan_overview(plan, expected);
    overview.studies = {totals_text(suite, world, totals)};
    for (std::string& line : starts_text(plan)) overview.studies.push_back(std::move(line));
    if (!note.empty()) overview.studies.push_back("Note: " + note);
    write_first_screen(std::move(overview), tables, options.output);
  } else {
    if (options.output.all)
      print(totals_text(suite, world, totals) + "\n" + (note.empty() ? "" : "Note: " + note + "\n") + "\n");
    write_tables(tables, options.output);
  }
  return kDone;
}

// Draws the stages of a pipeline over time, assuming that backward takes twice as long as forward.
std::string pipeline_text(const strategies::StepInput& input) {
  if (input.mesh.pipeline == 1) return {};
  const strategies::Stage stage = input.stage();
  const auto orders =
      strategies::pipeline_schedule(input.order).orders(stage.count, stage.chunks, input.accumulation);
  return strategies::draw_text(strategies::timeline(orders, {}, stage.placement)) + "\n";
}

// The point of the step. The flags that replace axes of a suite otherwise, and --set, give its values; each
// may give one value. Axes that nobody gives keep their defaults.
Point point_of_step(const PlanOptions& options) {
  Point point;
  point.workload = "training";
  point.ranks = options.ranks == 0 ? 8 : options.ranks;
  const auto set = [&](const std::string& key, const std::vector<std::string>& texts) {
    const AxisRow& axis = axis_named(key);
    if (texts.size() > 1)
      throw UsageError(
          fmt::format("{}: a step has one value, got {}", flag_of(axis), fmt::join(texts, ", ")));
    set_value(axis, values_from_flag(axis, texts, flag_of(axis)).front(), point);
  };
  set("model", {kModelOfStep});
  set("pipeline_schedule", {"1f1b"});
  for (const std::string& key : axes_of_step())
    if (const auto given = options.overrides.axes.find(key);
        given != options.overrides.axes.end() && !given->second.empty())
      set(key, given->second);
  const std::vector<std::string> keys(axes_of_step().begin(), axes_of_step().end());
  const YamlMap map(YamlNode::of_flag(options.overrides.set, "--set", keys), "--set", keys);
  for (const std::string& key : keys) {
    const YamlNode* const found = map.find(key);
    if (found == nullptr) continue;
    const std::vector<AxisValue> values = read_values(axis_named(key), *found);
    if (values.size() != 1) found->fail("a step has one value, got a list");
    set_value(axis_named(key), values.front(), point);
  }
  return point;
}

int print_step(const PlanOptions& options) {
  Point point = point_of_step(options);
  TrainingPoint& t = point.training;
  t.strategy = choice_from_flag(options.step.strategy, "--step", strategy_kind());
  t.optimizer = choice_from_flag("adamw", "--optimizer", optimizer_kind());
  t.batch_size = 1;
  refuse_idle_values(point, [](const AxisRow& axis) {
    return std::string(axis.key) == "strategy" ? "--step" : flag_of(axis);
  });
  if (const std::string reason = strategies::layout_impossible(point); !reason.empty())
    throw UsageError(reason);
  if (const std::string reason = strategy_reason(point); !reason.empty())
    throw UsageError("--step: " + reason);
  if (options.step.rank >= point.ranks)
    throw UsageError(fmt::format("--rank {}: expected a rank from 0 to {}, of {} ranks (-n)",
                                 options.step.rank, point.ranks - 1, point.ranks));
  const strategies::RankStep rank_step(point, options.step.rank);
  const strategies::StepInput& input = rank_step.input();
  const auto model = options.overrides.axes.find("model");
  const bool is_named = model != options.overrides.axes.end() && !model->second.empty();
  print(fmt::format("a step of {} on {}, as executed by rank {} of {}, in {}\n\n{}{}", options.step.strategy,
                    is_named ? model->second.front() : kModelOfStep, input.rank, point.ranks, t.precision,
                    pipeline_text(input),
                    strategies::to_text(strategies::strategy(t.strategy.name).step(input), input)));
  return kDone;
}

std::function<int()> define_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  offer(
      app.add_option("suite", options->suite, "the suite: suites/x.yaml, or a name shown by shardmark list"),
      {Candidates::Kind::suites});
  const std::string group = "One step, instruction by instruction, instead of a suite";
  StepOptions& step = options->step;
  auto* of_step =
      app.add_option("--step", step.strategy,
                     "print one step of this strategy, such as \"fsdp(prefetch=2)\"; on 8 ranks without -n")
          ->group(group);
  offer(of_step, {.words = [] { return strategy_kind().names; }});
  add_value(app, "--rank", step.rank, kRank, "whose program to print")->group(group)->capture_default_str();
  add_value(app, "-n", options->ranks, values::kRanks,
            "world size; default: that of the suite's largest point");
  add_value(app, "--memory", options->memory_bytes, values::kMemory,
            "memory of a rank, such as 80GiB: points whose state needs more are impossible");
  add_table_flags(app, options->output);
  add_override_flags(app, options->overrides);
  // --step prints one step and reads no suite. So it excludes the suite and every flag that is about a suite
  // or about tables, and the other flags of its group need it.
  const auto is_of_step = [&](const CLI::Option* option) {
    return option->get_group() == group || option->check_name("-n") || option->check_name("--set") ||
           std::any_of(axes_of_step().begin(), axes_of_step().end(), [&](const std::string& key) {
             const char* const flag = axis_named(key).flag;
             return flag != nullptr && option->check_name(flag);
           });
  };
  for (CLI::Option* option : app.get_options())
    if (option == app.get_help_ptr() || option == app.get_help_all_ptr() || option == of_step)
      continue;
    else if (!is_of_step(option))
      of_step->excludes(option);
    else if (option->get_group() == group)
      option->needs(of_step);
  return [options] {
    if (!options->step.strategy.empty()) return print_step(*options);
    if (options->suite.empty()) throw UsageError("which suite? give one, or --step STRATEGY");
    return print_plan(*options);
  };
}

const Registration<CommandEntry> plan_command{
    "plan", {"memory, traffic and time of a suite's points; nothing runs", define_plan}};

}  // namespace
}  // namespace shardmark

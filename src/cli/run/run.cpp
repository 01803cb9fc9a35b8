// shardmark run: measures a suite. Started on every rank by mpirun or srun.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "cli/candidates.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/find_suite.h"
#include "cli/run/live_metrics.h"
#include "cli/run/node_tests.h"
#include "cli/run/preflight.h"
#include "cli/run/start_settings.h"
#include "cli/run/sweep_checks.h"
#include "cli/run/world.h"
#include "cli/table_output.h"
#include "cli/values.h"
#include "cli/whole_program.h"
#include "comm/transports.h"
#include "device/device.h"
#include "device/meter.h"
#include "launch/told.h"
#include "schema/file.h"
#include "sweep/environment.h"
#include "sweep/sweep.h"
#include "sweep/workloads/reference.h"

namespace shardmark {
namespace {

struct Flags {
  std::string suite;
  std::string output;
  bool resume = false, rerun_failed = false;
  int64_t repetition = 0;  // from 1; 0: all repetitions
  RunFlags run;
};

// Makes the plan and puts it into running order. The notes of the plan become warnings of the suite.
std::vector<Point> points_in_order(Suite& suite, const World& machine) {
  std::vector<std::string> notes;
  const auto plan = make_plan(suite, machine, &notes);
  for (const std::string& note : notes) suite.warnings.push_back(suite.path + ": " + note);
  std::vector<Point> points;
  for (size_t index : run_order(suite, plan)) points.push_back(plan[index]);
  return points;
}

std::vector<std::string> precisions_of(const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const auto& point : points)
    if (point.workload == "training" && point.impossible.empty()) seen.insert(point.training.product_type());
  return {seen.begin(), seen.end()};
}

// What will be measured. It is decided, and refused if it is invalid, before anything is measured.
struct Sweep {
  Suite suite;
  std::vector<Point> plan;    // in the order of the run
  std::vector<Point> points;  // points of the plan that this start can measure
  int64_t memory = 0;         // memory of a rank, bytes
};

// Throws if a trace of another run would be replaced without --overwrite. `known` holds the points that this
// study has begun: their traces are its own and may be replaced.
void require_free_traces(const RunFlags& run, const std::vector<Point>& points,
                         const std::map<std::string, Known>& known) {
  if (run.trace.empty()) return;
  for (const Point& point : points)
    if (point.workload == "training" && point.impossible.empty() && !known.contains(point_id(point)))
      require_free(trace_path(run.trace, point), run.overwrite, {});
}

// If the preflight found something that stops the sweep (`is_stopped`), no points are left to measure, and
// all stay to be measured by a later start.
Sweep make_sweep(Suite suite, const Flags& flags, const Ranks& ranks, at::Device device, bool is_stopped) {
  World world{.ranks = ranks.world->size(),
              .ranks_per_node = ranks.session->local_size(),
              .precisions = native_precisions(device),
              .on_cpu = device.is_cpu(),
              .serving = serving_of(device, *ranks.world),
              .mpi = mpi_serves(device, *ranks.world)};
  Sweep sweep;
  sweep.suite = std::move(suite);
  together(*ranks.world, [&] {
    const RunFlags& run = flags.run;
    const int64_t limit =
        run.memory_limit_bytes == 0 ? sweep.suite.memory_limit_bytes : run.memory_limit_bytes;
    sweep.memory = limit_memory(limit, device, ranks.session->local_size());
    world.memory_per_rank_bytes = sweep.memory;
    world.transport = transport_for(run.world, device);
    sweep.plan = points_in_order(sweep.suite, world);
    refuse_unused(run, sweep.suite, sweep.plan);
    if (is_stopped) return;
    sweep.points = points_of_this_start(sweep.plan, run.world, sweep.suite.path, flags.repetition);
    check_transports(sweep.points, world.transport, device);
    check_data(sweep.points);
    if (ranks.world->rank() != 0) return;
    if (!run.trace.empty()) require_writable_directory(run.trace, "--trace");
    if (!flags.resume) require_free_traces(run, sweep.points, {});
    if (!run.openmetrics.empty()) LiveMetrics::require_place(run.openmetrics);
  });
  require_equal_settings(*ranks.world, sweep.plan, flags.run.world);
  if (ranks.world->rank() == 0)
    for (const std::string& warning : sweep.suite.warnings) log_warning(warning);
  return sweep;
}

// Selects the failed points of this plan, including the batches tried by its searches for the largest batch.
DueRule failed_points(const std::string& study, const std::vector<Point>& points) {
  std::set<std::string> planned, due;
  for (const Point& point : points) planned.insert(point_id(point));
  try {
    for (const Record& record : read_study(study, Load::without_samples).records) {
      const bool is_try = is_known_workload(record.point) && search_of(record.point, planned);
      if (planned.contains(record.id) || is_try) due.insert(record.id);
    }
  } catch (const UsageError&) {  // no study yet, or resuming it reports the error
  }
  return [due = std::move(due)](const std::string& id, const Known& known) {
    return known.has_failed() && due.contains(id);
  };
}

// The command with which a user resumes this study: launch, if it started the ranks or if points need other
// starts than this one; otherwise the way in which the ranks were started.
std::string resume_command(const Flags& flags, const HostGroup& world, const Sweep& sweep) {
  if (const char* const by_launch = std::getenv(kResumeVariable)) return by_launch;
  if (sweep.plan.size() > sweep.points.size())
    return shell_line({"shardmark", "launch", flags.suite, "-n", fmt::format("{}", world.size()), "-o",
                       flags.output, "--resume"});
  std::vector<std::string> words = mpirun_words();
  if (words.empty()) {
    words = command_words();
    if (world.size() > 1) words.insert(words.begin(), {"mpirun", "-n", fmt::format("{}", world.size())});
  }
  std::erase(words, "--rerun-failed");
  if (std::find(words.begin(), words.end(), "--resume") == words.end()) words.emplace_back("--resume");
  return shell_line(words);
}

// The command that measures the failed points again.
std::string rerun_command(const Flags& flags, const HostGroup& world, const Sweep& sweep) {
  const std::string resume = " --resume";
  std::string command = resume_command(flags, world, sweep);
  return command.insert(command.find(resume) + resume.size(), " --rerun-failed");
}

// Opens the study on rank 0; empty on other ranks.
std::optional<Study> open_study(const Flags& flags, const Ranks& ranks, const Sweep& sweep,
                                const Preflight& checked, const std::optional<NodeTests>& tests,
                                Environment environment) {
  std::optional<Study> study;
  together(*ranks.world, [&] {
    if (ranks.world->rank() != 0) return;
    environment.command_line = command_line();
    (*environment.facts)[kResumeFact] = resume_command(flags, *ranks.world, sweep);
    environment.suite_text = sweep.suite.text;
    environment.suite_path = sweep.suite.path;
    environment.transport = transport_for(flags.run.world, checked.device);
    environment.order_seed = sweep.suite.seed;
    (*environment.facts)["memory_of_a_rank_bytes"] = sweep.memory;
    auto& planned = (*environment.facts)[kPlannedFact] = nlohmann::ordered_json::array();
    for (const Point& point : sweep.plan) planned.push_back(point_id(point));
    forget_settings(sweep.plan, environment);
    if (flags.run.check_collectives) (*environment.facts)["collectives_checked"] = true;
    checked.keep_in(environment);
    if (tests) keep(*tests, environment);
    const DueRule is_due = flags.rerun_failed ? failed_points(flags.output, sweep.points) : DueRule();
    study.emplace(flags.resume ? Study::resume(flags.output, environment, is_due)
                               : Study::create(flags.output, environment));
    if (flags.resume) require_free_traces(flags.run, sweep.points, study->known());
    const int64_t count = study->num_due();
    if (!flags.run.quiet && (flags.rerun_failed || count > 0))
      log_line(fmt::format("{} failed point{} to be measured again", count, count == 1 ? " is" : "s are"));
  });
  return study;
}

// Where progress is shown. If launch started the ranks, stderr is a pipe to it, and launch tells whether its
// own stderr is a terminal.
bool is_launched() { return std::getenv(kProgressVariable) != nullptr; }

ProgressOn shows_progress_on() {
  const char* const by_launch = std::getenv(kProgressVariable);
  if (by_launch == nullptr) return terminal_columns() > 0 ? ProgressOn::terminal : ProgressOn::log;
  return std::string(by_launch) == kProgressOnTerminal ? ProgressOn::launch : ProgressOn::log;
}

// "52 points, at most 84 s of timed steps"; for a resumed study, the points that are left.
std::string extent(const Sweep& sweep, const std::optional<Study>& study) {
  std::vector<Point> left;
  for (const Point& point : sweep.points) {
    const auto known = study->known().find(point_id(point));
    if (known == study->known().end() || !known->second.is_over()) left.push_back(point);
  }
  const auto before = sweep.points.size() - left.size();
  return extent_text(left) + (before == 0 ? "" : fmt::format("; {} from before", before));
}

// Ends the run with an error that the user has to fix, such as a full disk, and the command that continues
// afterwards.
[[noreturn]] void fail_for_now(const UsageError& trouble, const std::string& how_to_go_on) {
  throw UsageError(std::string(trouble.what()) + "; to go on afterwards: " + how_to_go_on);
}

// Points of the plan that need another start of the ranks and have no final record yet.
std::vector<std::string> points_to_go(const Sweep& sweep, const Study& study) {
  std::set<std::string> ids;
  for (const Point& point : sweep.plan) ids.insert(point_id(point));
  for (const Point& point : sweep.points) ids.erase(point_id(point));
  for (const auto& [id, known] : study.known())
    if (known.is_over()) ids.erase(id);
  return {ids.begin(), ids.end()};
}

void publish(const Flags& flags, const Ranks& ranks, const Sweep& sweep, std::optional<Study>& study) {
  ranks.heartbeat().begin_point("the end of the sweep");
  if (ranks.world->rank() == 0)
    ranks.heartbeat().stage("publishing the study");
  else
    ranks.heartbeat().meet("their points");
  together(*ranks.world, [&] {
    try {
      if (study) study->publish(points_to_go(sweep, *study));
    } catch (const UsageError& error) {
      fail_for_now(error, resume_command(flags, *ranks.world, sweep));
    }
  });
  ranks.heartbeat().end_point();
}

// "5 points measured, 1 skipped, 2 from before; study: results/x.h5"
std::string last_line(const RunSummary& summary, const Sweep& sweep, const Flags& flags,
                      const HostGroup& world) {
  std::string text =
      fmt::format("{} point{} measured", summary.num_measured, summary.num_measured == 1 ? "" : "s");
  if (summary.num_skipped > 0) text += fmt::format(", {} skipped", summary.num_skipped);
  if (summary.num_before > 0) text += fmt::format(", {} from before", summary.num_before);
  if (summary.num_bad > 0)
    text += fmt::format(", {} failed or wrong (to measure them again: {})", summary.num_bad,
                        rerun_command(flags, world, sweep));
  if (const auto others = sweep.plan.size() - sweep.points.size(); others > 0)
    text += fmt::format(", {} of other {}", others, flags.repetition == 0 ? "settings" : "starts");
  return text + "; study: " + flags.output;
}

// Calls run_points. If the study cannot be written any more, every rank ends, and one message is printed.
RunSummary measure(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                   const Resources& resources, const RunOptions& options, Watchdog& watchdog,
                   const std::string& how_to_go_on) {
  try {
    return run_points(world, points, study, resources, options, watchdog);
  } catch (const StudyLost& lost) {
    together(world, [&] {
      if (world.rank() == 0) fail_for_now(lost, how_to_go_on);
    });
    throw;
  }
}

void warn_of_points_not_met(const std::optional<Study>& study) {
  if (study && study->num_due() > 0)
    log_warning(fmt::format(
        "{} of the failed points that were to be measured again are not in this plan; they stay as they were",
        study->num_due()));
}

// A sweep, from the suite's YAML to the study's HDF5 file, on every rank. Whatever ends, skips or repeats
// work is decided by all ranks together.
int run(const Flags& flags) {
  // Initialize MPI. A watchdog names the rank that keeps the others waiting.
  const Ranks ranks(flags.run.world);
  const HostGroup& world = *ranks.world;
  Heartbeat& heartbeat = ranks.heartbeat();

  // Read the suite (src/plan).
  heartbeat.stage("reading the suite");
  Suite suite;
  together(world, [&] { suite = read_suite(find_suite(flags.suite), flags.run.overrides); });

  // Find problems that would distort the numbers before anything is measured (src/doctor).
  heartbeat.stage("preflight");
  const std::optional<Acceptance> accept = agreed_acceptance(world, suite);
  Preflight checked = preflight(flags.run.world, ranks, flags.output, accept.has_value());
  const at::Device device = checked.device;
  const std::string stopper = world.broadcast(checked.stopper(), 0);

  // Expand the suite into points; points that cannot run get their reason.
  heartbeat.stage("making the plan");
  const Sweep sweep = make_sweep(std::move(suite), flags, ranks, device, !stopper.empty());
  checked.look_at_layouts(sweep.points);

  // Test every node, if the suite ends with a verdict on each.
  std::optional<NodeTests> tests;
  if (accept)
    tests = test_nodes(*accept, sweep.suite.path, flags.run.world, ranks, checked, !stopper.empty());

  // Measure the peak FLOP/s of this machine with a matrix product in each precision.
  heartbeat.stage("measuring the peaks of this machine");
  const Resources resources = describe_resources(world, *ranks.session, device, precisions_of(sweep.points));

  // Rank 0 opens the study: a journal that survives any crash (src/schema).
  heartbeat.stage("opening the study");
  std::optional<Study> study =
      open_study(flags, ranks, sweep, checked, tests, describe_environment(world, device, resources));
  checked.print_warnings(flags.run.quiet);

  // Set up each point, verify it against one device, time it and record it (src/sweep).
  std::optional<LiveMetrics> metrics;
  if (study && !flags.run.openmetrics.empty())
    metrics.emplace(flags.run.openmetrics, flags.output, std::ssize(sweep.plan));
  if (world.rank() == 0 && !flags.run.quiet && !is_launched()) log_line(extent(sweep, study));
  const RunOptions options{transport_for(flags.run.world, device),
                           device,
                           flags.run.quiet ? ProgressOn::nothing : shows_progress_on(),
                           flags.run.check_collectives,
                           flags.run.trace,
                           flags.run.overwrite,
                           [&](const Point& point) {
                             if (metrics) metrics->begin(point);
                           }};
  const RunSummary summary = measure(world, sweep.points, study, resources, options, *ranks.watchdog,
                                     resume_command(flags, world, sweep));
  warn_of_points_not_met(study);

  // Turn the journal into one HDF5 file.
  publish(flags, ranks, sweep, study);
  if (world.rank() == 0 && !stopper.empty())
    log_warning(
        fmt::format("nothing was measured, so all points are to go: {}; study: {}", stopper, flags.output));
  else if (world.rank() == 0 && !flags.run.quiet)
    log_line(last_line(summary, sweep, flags, world));
  // launch judges the nodes itself.
  const bool is_faulty = tests && world.broadcast(static_cast<int64_t>(tests->has_faults()), 0) != 0;
  return summary.num_bad == 0 && (!is_faulty || is_launched()) ? kDone : kWrong;
}

std::function<int()> define_run(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  offer(app.add_option("suite", flags->suite, "the suite: a YAML file, or a name shown by shardmark list")
            ->required(),
        {Candidates::Kind::suites});
  app.add_option("-o,--output", flags->output, "the study to write, such as results/x.h5")->required();
  app.add_flag("--resume", flags->resume, "continue this study: finished points are not run again");
  app.add_flag(
         "--rerun-failed", flags->rerun_failed,
         "with --resume: measure again the points that failed, were wrong, timed out, or ended their job")
      ->needs("--resume");
  add_value(
      app, "--repetition", flags->repetition, values::kRepeats,
      "measure only this repetition of a suite with repeats, from 1: launch gives it to each start of a "
      "suite that lists settings (default: all)");
  add_run_flags(app, flags->run);
  return [flags] { return run(*flags); };
}

const Registration<CommandEntry> run_command{"run", {whole_command("run")->description, define_run}};

}  // namespace
}  // namespace shardmark

// shardmark run: the sweep. Started on every rank by mpirun or srun.
#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/overrides.h"
#include "cli/run/preflight.h"
#include "cli/run/world.h"
#include "data/source.h"
#include "device/device.h"
#include "device/meter.h"
#include "runner/environment.h"
#include "runner/runner.h"
#include "strategies/precision.h"
#include "workloads/reference.h"

namespace shardmark {
namespace {

struct RunFlags {
  std::string suite;
  std::string output;
  bool resume = false;
  bool quiet = false;
  bool check_collectives = false;
  WorldFlags world;
  std::string memory_limit;
  Overrides overrides;
};

std::vector<Point> points_in_order(const Suite& suite, const World& machine) {
  const auto plan = make_plan(suite, machine);
  std::vector<Point> points;
  for (size_t index : run_order(suite, plan)) points.push_back(plan[index]);
  return points;
}

// A missing data file or an unknown precision ends the run before anything is measured, on every node that
// lacks it.
void check_data(const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const auto& point : points) {
    if (point.workload != "training" || !point.impossible.empty()) continue;
    const auto& t = point.training;
    if (!seen.insert(to_text(t.data) + to_text(t.model)).second) continue;
    make_source(t.data, {laws::model_law(t.model.name).table(t.model.options).sample,
                         precision_from(t.precision, t.reduce_dtype).compute, point.seed});
  }
}

// Told once and before anything is written; points may name a transport of their own.
void check_transports(const std::vector<Point>& points, const std::string& transport, at::Device device) {
  for (const auto& point : points)
    if ((point.transport.empty() ? transport : point.transport) == "nccl" && !device.is_cuda())
      throw UsageError("transport nccl needs a GPU for every rank; use transport mpi on CPUs");
}

std::vector<std::string> precisions_of(const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const auto& point : points)
    if (point.workload == "training" && point.impossible.empty()) seen.insert(point.training.precision);
  return {seen.begin(), seen.end()};
}

int64_t memory_per_rank(int64_t limit, at::Device device, int local_ranks) {
  if (limit > 0) return limit;
  const auto share = static_cast<double>(device_memory_bytes(device)) / (device.is_cuda() ? 1 : local_ranks);
  return static_cast<int64_t>(0.8 * share);  // the rest is for the system, libraries and page cache
}

Study open_study(const RunFlags& flags, const Environment& environment) {
  return flags.resume ? Study::resume(flags.output, environment) : Study::create(flags.output, environment);
}

int run(const RunFlags& flags) {
  const MpiSession session;
  const HostGroup world = HostGroup::world();
  const Preflight checked = preflight(flags.world, session, world, flags.output);
  const at::Device device = checked.device;
  Suite suite;
  std::vector<Point> points;
  int64_t memory = 0;
  together(world, [&] {
    suite = read_suite(flags.suite, flags.overrides);
    const int64_t limit =
        flags.memory_limit.empty() ? suite.memory_limit_bytes : parse_bytes(flags.memory_limit);
    memory = memory_per_rank(limit, device, session.local_size());
    if (!device.is_cuda() || limit > 0) meter::set_limit(memory);
    points = points_in_order(suite, {world.size(), memory, session.local_size(), native_precisions(device)});
    check_transports(points, transport_for(flags.world, device), device);
    check_data(points);
  });
  const Placement placement = describe_placement(world, session.local_size(), device, precisions_of(points));
  Environment environment = describe_environment(world, device, placement);
  const RunOptions options{transport_for(flags.world, device), device, flags.quiet, flags.check_collectives};
  std::optional<Study> study;
  together(world, [&] {
    if (world.rank() != 0) return;
    environment.command_line = flags.world.command_line;
    environment.suite_text = suite.text;
    environment.suite_path = suite.path;
    environment.transport = options.transport;
    environment.order_seed = suite.seed;
    environment.facts["memory_of_a_rank_bytes"] = memory;
    if (flags.check_collectives) environment.facts["collectives_checked"] = true;
    checked.keep_in(environment);
    study.emplace(open_study(flags, environment));
  });
  checked.tell(flags.quiet);

  const auto watchdog = watch(flags.world, world);
  RunSummary summary;
  try {
    summary = run_points(world, points, study, placement, options, *watchdog);
  } catch (const StudyLost& lost) {
    together(world, [&] {
      if (world.rank() == 0) throw UsageError(lost.what());
    });
  }
  Flight& flight = watchdog->flight();
  flight.begin_point("the end of the sweep");
  if (world.rank() == 0)
    flight.stage("publishing the study");
  else
    flight.meet("their points");
  together(world, [&] {
    if (world.rank() == 0) study->publish();
  });
  flight.end_point();
  if (world.rank() == 0 && !flags.quiet)
    log_line(fmt::format("{} points measured, {} not as they should be; study: {}", summary.num_points,
                         summary.num_bad, flags.output));
  return summary.num_bad == 0 ? kDone : kWrong;
}

std::function<int()> define(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  app.add_option("suite", flags->suite, "the suite, a YAML file")->required();
  app.add_option("-o,--output", flags->output, "the study to write, such as results/x.h5")->required();
  app.add_flag("--resume", flags->resume, "go on with this study: finished points are not run again");
  app.add_flag("-q,--quiet", flags->quiet, "no progress");
  app.add_option(
      "--memory-limit", flags->memory_limit,
      "of a rank, such as 8GiB (default: the suite's, else 0.8 of the node's memory / its ranks, or of "
      "the GPU)");
  app.add_flag(
      "--check-collectives", flags->check_collectives,
      "compare every collective across its ranks before it starts and name those that differ: for finding "
      "a hang, not for measuring");
  add_world_flags(app, flags->world);
  add_override_flags(app, flags->overrides);
  return [flags] { return run(*flags); };
}

const Registration<CommandEntry> registered{
    "run", {"run a suite on all ranks: mpirun -n 8 shardmark run suites/x.yaml -o x.h5", define}};

}  // namespace
}  // namespace shardmark

// shardmark submit: writes the Slurm job of a suite and hands it to sbatch.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/after_dashes.h"
#include "cli/command.h"
#include "cli/parsed.h"
#include "cli/plan_tables.h"
#include "launch/job_script.h"
#include "launch/process.h"
#include "schema/file.h"

namespace shardmark {
namespace {

constexpr double kStartS = 300;       // of a job: nodes, libraries, the first point
constexpr double kBesidesPoint = 10;  // seconds of set-up and verification of a point
constexpr double kBesidesSteps = 2;   // warm-up and twins take up to the time limit of the steps, each
constexpr double kRoundS = 300;

struct SubmitFlags {
  HandedArguments arguments;  // suites; flags of run
  std::string time;
  std::string env_file = "jobs/env.sh";
  bool print = false;
  JobOptions job;
};

// The most that the suites' plans may take; as one job each, the longest counts.
double estimate_s(const std::vector<std::string>& suites, int64_t ranks, std::string& reason) {
  double longest_s = 0;
  for (const std::string& path : suites) {
    const Suite suite = read_suite(path, {});
    World world{ranks, 0};
    if (ranks == 0)
      for (const Point& point : suite.points) world.ranks = std::max({world.ranks, point.ranks, int64_t{1}});
    const PlanTotals totals = plan_totals(make_plan(suite, world));
    const auto points = static_cast<double>(totals.num_points - totals.num_impossible);
    const double suite_s =
        kStartS + points * kBesidesPoint + totals.time_limit_s + kBesidesSteps * totals.besides_s;
    if (suite_s < longest_s) continue;
    longest_s = suite_s;
    reason = fmt::format(
        "At most, by the plan: {:.0f} points of {} with {} of timed steps, {} for warm-up and as much for "
        "twins, and {:.0f} s a point",
        points, path, format_seconds(totals.time_limit_s), format_seconds(totals.besides_s), kBesidesPoint);
  }
  return std::ceil(longest_s / kRoundS) * kRoundS;
}

// "90m", "2h", or Slurm's "02:00:00", "1-00:00:00", "120" (minutes).
double time_s(const std::string& text) {
  double parts[4] = {};  // days, hours, minutes, seconds
  int read = 0;
  const auto all = [&](int count, int wanted) {
    return count == wanted && text[static_cast<size_t>(read)] == '\0';
  };
  if (all(std::sscanf(text.c_str(), "%lf-%lf:%lf:%lf%n", &parts[0], &parts[1], &parts[2], &parts[3], &read),
          4) ||
      all(std::sscanf(text.c_str(), "%lf:%lf:%lf%n", &parts[1], &parts[2], &parts[3], &read), 3))
    return ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3];
  char unit = 'm', more = 0;
  const int count = std::sscanf(text.c_str(), "%lf%c%c", &parts[2], &unit, &more);
  const double factor = unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
  if (count < 1 || count > 2 || factor == 0 || !(parts[2] > 0))
    throw UsageError("--time " + text +
                     ": accepted are 90m, 2h, 02:00:00, 1-00:00:00 and minutes as a number");
  return parts[2] * factor;
}

// sbatch reads account, partition and the like from the environment file's SBATCH_* variables, and the job
// from stdin. The shell's text is fixed; what users name comes as arguments.
int hand_to_sbatch(const std::string& script_path, const std::string& env_file) {
  const std::string shell =
      "set -eu; if [ -e \"$1\" ]; then set +u; . \"$1\"; set -u; fi; exec sbatch \"$2\"";
  return run_process({"bash", "-c", shell, "submit", env_file, script_path}, {},
                     [](const std::string& line) { fmt::print("{}\n", line); });
}

// Kept beside the logs: what ran can be read later.
std::string write_script(const JobOptions& job, const std::string& text) {
  std::error_code trouble;
  std::filesystem::create_directories(job.results, trouble);
  for (int number = 1;; ++number) {
    const std::string path = fmt::format("{}/submit-{:04}.sbatch", job.results, number);
    if (file_exists(path)) continue;
    std::ofstream(path) << text;
    if (!file_exists(path))
      throw UsageError("cannot write " + path + "; submit from a folder that you may write to");
    return path;
  }
}

int submit(SubmitFlags flags) {
  JobOptions& job = flags.job;
  job.suites = flags.arguments.own();
  job.flags = flags.arguments.flags();
  if (job.suites.empty()) throw UsageError("no suite given: shardmark submit --nodes 2 suites/x.yaml");
  const int64_t per_node = job.ranks_per_node > 0 ? job.ranks_per_node : job.gpus_per_node;
  job.time_limit_s = estimate_s(job.suites, per_node * job.nodes, job.time_reason);
  if (!flags.time.empty()) {
    job.time_limit_s = time_s(flags.time);
    job.time_reason = "As asked for with --time";
  }
  job.folder = std::filesystem::current_path();
  job.program = std::filesystem::read_symlink("/proc/self/exe");
  job.env_file = flags.env_file;
  const std::string text = job_script(job);
  if (flags.print) {
    std::fputs(text.c_str(), stdout);
    return kDone;
  }
  const std::string path = write_script(job, text);
  const int status = hand_to_sbatch(path, flags.env_file);
  if (status == 127)
    throw UsageError("there is no sbatch here: submit on a login node of the cluster, or see --print");
  if (status != 0)
    throw UsageError("sbatch refused " + path + " (its message is above); --print shows the script");
  return kDone;
}

std::function<int()> define(CLI::App& app) {
  auto flags = std::make_shared<SubmitFlags>();
  JobOptions& job = flags->job;
  flags->arguments.add_to(app, "suites", "YAML files; several become an array of jobs");
  app.add_option("--nodes", job.nodes)->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("--gpus-per-node", job.gpus_per_node, "0: CPU ranks")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--ranks-per-node", job.ranks_per_node, "default: one for each GPU, or core")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--time", flags->time, "limit of one turn: 90m, 2h, 02:00:00 (default: from the plan)");
  app.add_option("--signal-ahead", job.signal_ahead_s,
                 "seconds before the limit at which the job has itself requeued")
      ->check(CLI::Range(10, 86400))
      ->capture_default_str();
  app.add_option("--env", flags->env_file,
                 "account, partition, modules, launcher, container: see jobs/env.sh.example")
      ->capture_default_str();
  app.add_option("--results", job.results, "folder of studies and logs")->capture_default_str();
  app.add_flag("--print", flags->print, "print the script, submit nothing");
  return [flags] { return submit(*flags); };
}

const Registration<CommandEntry> registered{
    "submit",
    {"submit suites as Slurm jobs: shardmark submit --nodes 4 --gpus-per-node 8 suites/x.yaml", define}};

}  // namespace
}  // namespace shardmark

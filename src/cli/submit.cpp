// shardmark submit: writes the job of a suite for a batch system, and passes it to sbatch, qsub, flux batch
// or kubectl.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/after_dashes.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/find_suite.h"
#include "cli/plan_tables.h"
#include "cli/run_flags.h"
#include "cli/values.h"
#include "launch/job_script.h"
#include "launch/process.h"
#include "plan/starts.h"
#include "plan/yaml_node.h"
#include "schema/file.h"

namespace shardmark {
namespace {

// Seconds for the start of a job: nodes, libraries, the first point.
constexpr double kStartS = 300;
constexpr double kBesidesPoint = 10;  // seconds of set-up and verification of a point
// Warm-up and ablations may each take up to the time limit of the steps.
constexpr double kBesidesSteps = 2;
// The estimate is rounded up to a multiple of this.
constexpr double kRoundS = 300;

struct SubmitFlags {
  HandedArguments arguments;  // suites, and flags of run
  double time_s = 0;          // 0: estimated from the plan
  std::string to = "slurm";
  std::string env_file;  // empty: jobs/env.sh, if it exists
  bool print = false;
  JobOptions job;
};

// The longest time that the suites' plans may take. Each suite is a job of its own, so the longest suite
// counts. Its time is the sum of the starts of its ranks, the set-up of its points, their timed steps, and
// their warm-up and ablations, which may each take as long as the time limit of the steps.
double estimate_s(const JobOptions& job, int64_t ranks, std::string& reason) {
  double longest_s = 0;
  for (const std::string& path : job.suites) {
    const Suite suite = read_suite(find_suite(path), parse_run_flags(job.flags).overrides);
    World world{ranks, 0};
    if (ranks == 0)
      for (const Point& point : suite.points) world.ranks = std::max({world.ranks, point.ranks, int64_t{1}});
    const std::vector<Point> plan = make_plan(suite, world);
    const PlanTotals totals = plan_totals(plan, expect_all(plan));
    const auto starts = static_cast<double>(starts_of(plan).size());
    const auto points = static_cast<double>(totals.num_points - totals.num_impossible);
    const double suite_s =
        starts * kStartS + points * kBesidesPoint + totals.time_limit_s + kBesidesSteps * totals.besides_s;
    const double tests_s = suite.accept ? starts * longest_tests_s(*suite.accept) : 0;
    if (suite_s + tests_s < longest_s) continue;
    longest_s = suite_s + tests_s;
    reason = fmt::format(
        "At most, by the plan: {:.0f} points of {} with {} of timed steps, {} for warm-up and as much for "
        "ablations, and {:.0f} s a point{}",
        points, path, format_seconds(totals.time_limit_s), format_seconds(totals.besides_s), kBesidesPoint,
        starts == 1 ? "" : fmt::format("; {:.0f} starts of {:.0f} s", starts, kStartS));
    if (tests_s > 0) reason += fmt::format("; {} for the tests of nodes", format_seconds(tests_s));
  }
  return std::ceil(longest_s / kRoundS) * kRoundS;
}

// Throws if the signal comes too early to leave time for a point.
void check_time(const JobOptions& job) {
  static_cast<void>(slurm_time(job.time_limit_s));  // throws if no scheduler could represent it
  if (job.time_limit_s >= static_cast<double>(job.signal_ahead_s) + 60) return;
  throw UsageError(fmt::format(
      "a job of {} that is signalled {} s before its end has no time to measure: give more with --time",
      slurm_time(job.time_limit_s), job.signal_ahead_s));
}

// Submits the job. sbatch reads account, partition and other options from the SBATCH_* variables of the
// environment file; flags win over those. The shell's text is fixed, and values from the user are passed as
// arguments.
int hand_over(const Scheduler& scheduler, const std::string& job_path, const SubmitFlags& flags) {
  const std::string shell = "if [ -e \"$1\" ]; then . \"$1\"; fi; shift; exec \"$@\"";
  std::vector<std::string> arguments = {"bash", "-c", shell, "submit", flags.job.env_file};
  arguments.insert(arguments.end(), scheduler.command.begin(), scheduler.command.end());
  arguments.insert(arguments.end(), flags.job.submit_flags.begin(), flags.job.submit_flags.end());
  arguments.push_back(scheduler.before_file + job_path);
  return run_process(arguments, {}, [](const std::string& line) { print(line + "\n"); });
}

// What the environment file and this shell say to a scheduler: the variables of the environment, IMAGE and
// VOLUME_CLAIM, and the words of SUBMIT_FLAGS, which come before the flags of the command line.
void read_environment(SubmitFlags& flags) {
  // A value may have several lines. So entries end with a zero, and line breaks and zeros change places on
  // the way.
  const std::string shell =
      "if [ -e \"$1\" ]; then . \"$1\" >/dev/null 2>&1; fi; { printf 'SUBMIT_FLAGS=%s\\0' "
      "\"${SUBMIT_FLAGS[@]}\"; export IMAGE VOLUME_CLAIM; unset SUBMIT_FLAGS; env -0; } | tr '\\n\\0' "
      "'\\0\\n'";
  std::vector<std::string> submit_flags;
  run_process({"bash", "-c", shell, "submit", flags.job.env_file}, {}, [&](const std::string& line) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos || equals + 1 == line.size()) return;
    const std::string name = line.substr(0, equals);
    std::string value = line.substr(equals + 1);
    std::replace(value.begin(), value.end(), '\0', '\n');
    if (name == "SUBMIT_FLAGS")
      submit_flags.push_back(value);
    else
      flags.job.variables[name] = value;
  });
  flags.job.submit_flags.insert(flags.job.submit_flags.begin(), submit_flags.begin(), submit_flags.end());
}

// Writes the script next to the logs, so that it can be read later.
std::string write_job(const char* extension, const std::string& text) {
  std::error_code trouble;
  std::filesystem::create_directories(kResultsOfJobs, trouble);
  for (int number = 1;; ++number) {
    std::string path = fmt::format("{}/submit-{:04}.{}", kResultsOfJobs, number, extension);
    std::FILE* const file = std::fopen(path.c_str(), "wx");  // x: only one of two processes gets the number
    if (file == nullptr && errno == EEXIST) continue;
    const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
    if (file == nullptr || std::fclose(file) != 0 || !written) {  // a partial script must not be submitted
      if (file != nullptr) ::unlink(path.c_str());
      throw UsageError("cannot write " + path +
                       "; submit from a folder that you may write to and that has room");
    }
    return path;
  }
}

// The launcher that the flags or LAUNCHER name; empty: the scheduler's own, or what the environment file
// says.
std::string launcher_of(const JobOptions& job, const Scheduler& scheduler) {
  const char* const asked = std::getenv("LAUNCHER");
  std::string launcher = !job.launcher.empty() ? job.launcher : asked != nullptr ? asked : "";
  const std::vector<std::string>& known = scheduler.launchers;
  if (launcher.empty() || std::find(known.begin(), known.end(), launcher) != known.end()) return launcher;
  throw UsageError(fmt::format("{}{}: in jobs of {}, {} start{} ranks",
                               job.launcher.empty() ? "LAUNCHER=" : "--launcher ", launcher, scheduler.name,
                               fmt::join(known, ", "), known.size() == 1 ? "s" : ""));
}

// Prints one job, or submits it.
void submit_one(const SubmitFlags& flags, const Scheduler& scheduler) {
  const std::string text = scheduler.job(flags.job);
  if (flags.print) return print_data(text);  // it is quoted and may be run
  const std::string path = write_job(scheduler.extension, text);
  const int status = hand_over(scheduler, path, flags);
  const std::string& command = scheduler.command.front();
  if (status == 127)
    throw UsageError("there is no " + command +
                     " here: submit on a login node of the cluster, or see --print");
  if (status != 0)
    throw UsageError(command + " refused " + path + " (its message is above); --print shows the job");
}

int submit(SubmitFlags flags) {
  JobOptions& job = flags.job;
  const Scheduler& to = scheduler(flags.to);
  job.suites = flags.arguments.own();
  job.flags = flags.arguments.flags();
  if (job.suites.empty()) throw UsageError("no suite given: shardmark submit --nodes 2 suites/x.yaml");
  // Take the time limit from --time or from the plan.
  const int64_t per_node = job.ranks_per_node > 0 ? job.ranks_per_node : job.gpus_per_node;
  job.time_limit_s = estimate_s(job, per_node * job.nodes, job.time_reason);
  if (flags.time_s > 0) {
    job.time_limit_s = flags.time_s;
    job.time_reason = "As requested with --time";
    if (flags.to == "slurm")  // it wins over SBATCH_TIMELIMIT
      job.submit_flags.insert(job.submit_flags.begin(), "--time=" + slurm_time(job.time_limit_s));
  }
  check_time(job);
  if (!job.study.empty() && job.suites.size() > 1)
    throw UsageError("--output names one study, but there are " + std::to_string(job.suites.size()) +
                     " suites");
  if (!flags.env_file.empty() && !file_exists(flags.env_file))
    throw UsageError("--env " + flags.env_file +
                     ": no such file; jobs/env.sh.example shows what it may hold");
  // Collect what the job needs to find again when it starts: folder, program, environment file, launcher.
  std::error_code gone;
  job.folder = std::filesystem::current_path(gone);
  if (gone) throw UsageError("the working directory is gone; submit from one that is there");
  job.program = own_program();
  job.env_file = std::filesystem::absolute(flags.env_file.empty() ? "jobs/env.sh" : flags.env_file);
  std::error_code trouble;  // the job itself will report a file that cannot be inspected
  if (std::filesystem::exists(job.env_file, trouble) && job.env_file != "/dev/null" &&
      !std::filesystem::is_regular_file(job.env_file, trouble))
    throw UsageError("--env: " + quoted_line(job.env_file) +
                     " is no regular file, which the job could read again when it starts");
  job.launcher = launcher_of(job, to);
  read_environment(flags);
  if (to.has_arrays) {
    submit_one(flags, to);
    return kDone;
  }
  if (flags.print && job.suites.size() > 1)
    throw UsageError("--print: each suite is a job of its own, so give one of them");
  const std::vector<std::string> suites = job.suites;
  for (const std::string& suite : suites) {
    job.suites = {suite};
    job.suite_text = read_text(find_suite(suite), "");
    submit_one(flags, to);
  }
  return kDone;
}

std::function<int()> define_submit(CLI::App& app) {
  auto flags = std::make_shared<SubmitFlags>();
  JobOptions& job = flags->job;
  flags->arguments.add_to(app, "suites", "YAML files; each is a job, or a task of one array");
  std::vector<std::string> names;
  for (const Scheduler& one : schedulers()) names.emplace_back(one.name);
  add_value(app, "--to", flags->to, Word{names}, "the batch system")->capture_default_str();
  add_value(app, "--nodes", job.nodes, values::kNodes, "number of nodes")->capture_default_str();
  add_value(app, "--gpus-per-node", job.gpus_per_node, values::kGpusPerNode, "0: CPU ranks")
      ->capture_default_str();
  add_value(app, "--ranks-per-node", job.ranks_per_node, values::kRanksPerNode,
            "default: one for each GPU, or core");
  add_value(app, "--time", flags->time_s, values::kJobTime,
            "time limit of one job: 90m, 2h, 02:00:00 (default: SBATCH_TIMELIMIT, else from the plan)");
  app.add_option("-o,--output", job.study,
                 "the study to write or continue (default: results/<suite>-job<id>.h5)");
  app.add_flag("--rerun-failed", job.rerun_failed,
               "measure again what failed in the study of -o, see run --help")
      ->needs("-o");
  add_value(app, "--launcher", job.launcher, Word{{"mpirun", "srun", "flux"}},
            "what starts the ranks (default: LAUNCHER, else what --env says)");
  offer(app.add_option("--submit-flag", job.submit_flags,
                       "a flag passed on to sbatch, qsub, flux batch or kubectl; repeat it for each word: "
                       "--partition=gpu")
            ->allow_extra_args(false),
        {});
  app.add_option("--env", flags->env_file,
                 "account, partition, modules, launcher, container: see jobs/env.sh.example (default: "
                 "jobs/env.sh)");
  app.add_flag("--print", flags->print, "print the job, without submitting it");
  return [flags] { return submit(*flags); };
}

const Registration<CommandEntry> submit_command{
    "submit", {"the same as a job of Slurm, PBS, Flux or Kubernetes", define_submit}};

}  // namespace
}  // namespace shardmark

// shardmark launch: starts the ranks of a sweep, supervises them, and continues after crashes
// (launch/rounds.h).
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/node.h"
#include "base/text.h"
#include "cli/after_dashes.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/find_suite.h"
#include "cli/node_verdicts.h"
#include "cli/report_output.h"
#include "cli/run_flags.h"
#include "cli/shared_folder.h"
#include "cli/values.h"
#include "launch/all_starts.h"
#include "launch/heterogeneous_job.h"
#include "launch/job_script.h"
#include "launch/process.h"
#include "launch/study_name.h"
#include "launch/told.h"
#include "plan/plan.h"
#include "plan/starts.h"
#include "schema/file.h"
#include "schema/journal.h"

extern char** environ;

namespace shardmark {
namespace {

constexpr const char* kStudies = "results";
// Seconds that ranks may take to open the study, because container images and libraries may load slowly from
// a shared file system; and the minimum that the launcher gets to start ranks, which then have a watchdog of
// their own.
constexpr double kStartS = 600, kBeforeRanksS = 60;

struct LaunchFlags {
  HandedArguments arguments;  // the suite, and flags of run
  Suite suite = {};           // read from the arguments
  RunFlags run = {};          // parsed from the flags of run
  std::string output;
  bool resume = false, rerun_failed = false, requeue = false, print = false, report = false;
  LaunchOptions options;
};

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int64_t number(const std::string& text) { return text.empty() ? 0 : std::atoll(text.c_str()); }

// The nodes of the Flux job whose script calls us: Flux has a broker on each.
Allocation read_flux() {
  Allocation allocation;
  // On a login node there is no id of a job, and the size is that of the whole cluster.
  const auto asked = [](const char* attribute, const std::function<void(const std::string&)>& take) {
    return run_process({"timeout", "60", "flux", "getattr", attribute}, {}, take) == 0;
  };
  if (!asked("jobid", [](const std::string&) {}) || !asked("size", [&](const std::string& line) {
        allocation.num_nodes = std::max<int64_t>(number(line), 1);
      }))
    throw UsageError(
        "--launcher flux: flux getattr does not know this job and its nodes; is this shell in a job of "
        "Flux?");
  return allocation;
}

Allocation read_allocation(const std::string& launcher) {
  if (launcher == "flux") return read_flux();
  const std::string job = variable("SLURM_JOB_ID");
  if (const auto groups = heterogeneous_job([](const std::string& name) { return variable(name.c_str()); }))
    throw UsageError(refusal_of(*groups, "launch starts ranks on the first group alone"));
  if (job.empty()) return {};
  const int64_t least = least_cpus_per_node(variable("SLURM_JOB_CPUS_PER_NODE"));
  int64_t here = number(variable("SLURM_CPUS_ON_NODE"));  // not set in salloc's own shell
  // If this is the only node of the job, the fewest processors of any node are those of this node.
  const std::string host = host_name();
  if (here == 0 && variable("SLURM_JOB_NODELIST") == host.substr(0, host.find('.'))) here = least;
  return {job, std::max<int64_t>(number(variable("SLURM_NNODES")), 1), here, least};
}

// Environment variables such as those of NCCL that are set on this node. Ranks that mpirun starts on other
// nodes by ssh would not have them.
std::vector<std::string> variables_for_ranks() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    if (is_handed_variable(name)) names.push_back(name);
  }
  return names;
}

std::string signal_name(int number) { return fmt::format("signal {} ({})", number, ::strsignal(number)); }

bool has_study(const std::string& path) { return file_exists(path) || has_journal(path); }

// The command that resumes the study, to be typed: this command with the study's path and --resume.
std::string resume_command(const LaunchFlags& flags, const std::string& study) {
  std::vector<std::string> words, handed;
  for (const std::string& word : command_words()) {
    if (!handed.empty() || word == "--")
      handed.push_back(word);
    else if (word != "--resume" && word != "--rerun-failed" && word != "--report")
      words.push_back(word);
  }
  if (flags.output.empty()) words.insert(words.end(), {"-o", study});
  words.emplace_back("--resume");
  words.insert(words.end(), handed.begin(), handed.end());
  return shell_line(words);
}

// The job's id as scontrol takes it. Every task of a job array has an id of its own, but for one task that is
// also the id of the whole array, so that task is written as <array>_<task>.
std::string own_job(const Allocation& allocation) {
  const bool is_ambiguous = variable("SLURM_ARRAY_JOB_ID") == allocation.job;
  return is_ambiguous ? allocation.job + "_" + variable("SLURM_ARRAY_TASK_ID") : allocation.job;
}

// Handles a stop by a signal: a job's, ahead of its time limit, or a user's. The job is requeued only if it
// finished a point. Otherwise a point that takes longer than the time limit would be requeued forever.
int after_stop(const LaunchFlags& flags, const SweepEnd& end, const std::string& study,
               const Allocation& allocation) {
  const bool out_of_time = end.stopped_by == SIGUSR1 && flags.requeue;
  if (!out_of_time) {
    const std::string kept =
        has_study(study)
            ? fmt::format("{} finished and kept in {}; to go on: {}",
                          counted(end.num_finished, "more point") + (end.num_finished == 1 ? " is" : " are"),
                          study, resume_command(flags, study))
            : "nothing was measured yet";
    log_line(fmt::format("ended by {}; {}", signal_name(end.stopped_by), kept));
    return 128 + end.stopped_by;
  }
  if (end.num_finished == 0)
    throw UsageError(
        fmt::format("out of time before another point was finished: shorten the points of the suite, or "
                    "continue with more time on as many nodes: shardmark submit {} --time 8h -o {}",
                    shell_word(flags.arguments.own().front()), shell_word(study)));
  const bool in_slurm = !allocation.job.empty();
  log_line(fmt::format("out of time after {}, {}; the study is kept", counted(end.num_finished, "more point"),
                       in_slurm ? "requeued" : "so the job is submitted again"));
  if (!in_slurm) return kOutOfTime;  // the job's script waits for this status
  const int status = run_process({"timeout", "60", "scontrol", "requeue", own_job(allocation)}, {},
                                 [](const std::string&) {});
  if (status != 0)
    throw SystemError("scontrol requeue failed; submit the job again: finished points are kept");
  std::this_thread::sleep_for(std::chrono::minutes(2));  // Slurm ends this job meanwhile
  return kSystem;
}

std::string ranks_text(const LaunchCommand& command) {
  return fmt::format(
      "{} on {}{}", counted(command.ranks, "rank"),
      command.num_nodes == 0 ? "the hosts given to mpirun" : counted(command.num_nodes, "node"),
      command.threads == 0 ? "" : ", " + counted(command.threads, "thread") + " each");
}

// A resumed study needs the ranks and threads that it began with. Values that the user leaves open are taken
// from the study if there are as many nodes as it had. If not, the ranks refuse the study and say why.
void take_from_study(const std::string& study, int64_t num_nodes, LaunchOptions& options) {
  try {
    const Environment began = read_study(study, Load::without_samples).environment;
    if (std::ssize(began.nodes) != num_nodes && !names_hosts(options.flags)) return;
    if (options.ranks == 0) options.ranks = began.world_ranks;
    if (options.threads == 0) options.threads = began.threads_per_rank;
  } catch (const UsageError&) {  // no study yet, or the ranks will report its error
  }
}

// Prints a shell command in lines of readable width, broken before flags.
void print_command(const Sweep& sweep) {
  constexpr size_t kWidth = 100;
  std::vector<std::string> parts;  // words of one line: a flag and its values
  const auto add = [&](const std::vector<std::string>& words) {
    bool begins = true;
    for (const std::string& word : words) {
      if (begins || word.starts_with('-'))
        parts.push_back(shell_word(word));
      else
        parts.back() += " " + shell_word(word);
      begins = false;
    }
  };
  for (const auto& [name, value] : sweep.command.environment) parts.push_back(name + "=" + shell_word(value));
  add(sweep.command.arguments);
  add(sweep.run);
  if (sweep.resume) parts.emplace_back("--resume");
  if (sweep.rerun_failed) parts.emplace_back("--rerun-failed");
  std::string text, line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 1 + part.size() > kWidth) {
      text += line + " \\\n";
      line = "   ";
    }
    line += (line.empty() ? "" : " ") + part;
  }
  print_data(text + line + "\n");  // it is quoted and may be run
}

void make_folder_of_studies() {
  std::error_code trouble;
  std::filesystem::create_directories(kStudies, trouble);
  if (trouble || !std::filesystem::is_directory(kStudies, trouble))
    throw UsageError(fmt::format("cannot make the folder {}: {}; name a study elsewhere with -o", kStudies,
                                 trouble ? trouble.message() : "something else has that name"));
}

void read_variables(LaunchOptions& options) {
  options.variables = variables_for_ranks();
  options.sets_yield = variable("OMPI_MCA_mpi_yield_when_idle").empty();
  options.threads = number(variable("OMP_NUM_THREADS"));
  options.is_homeless = variable("HOME").empty() && ::getpwuid(::geteuid()) == nullptr;
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    options.pins_threads = options.pins_threads || !variable(name).empty();
}

// The sweep of one start. Its settings become environment variables of the ranks or flags of `run`.
Sweep with_settings(Sweep sweep, const StartOfPoints& start, LaunchOptions options,
                    const Allocation& allocation, const WorldFlags& given) {
  const Settings settings = settings_from_text(start.environment);
  if (start.repetition > 0)
    sweep.run.insert(sweep.run.end(), {"--repetition", std::to_string(start.repetition)});
  for (const auto& [name, value] : settings) {
    if (name == "threads") options.threads = number(value);
    if (name == "bind") sweep.run.insert(sweep.run.end(), {"--bind", value});
    if ((name == "threads" && given.threads != 0) || (name == "bind" && given.bind != "auto"))
      throw UsageError(
          fmt::format("the suite lists {} under environment; leave out --{} after --", name, name));
    if (is_variable(name)) options.variables.push_back(name);
    if (name == "OMPI_MCA_mpi_yield_when_idle") options.sets_yield = false;
  }
  sweep.command = make_launch_command(read_machine(), allocation, options);
  for (const auto& [name, value] : settings)
    if (is_variable(name)) sweep.command.environment.emplace_back(name, value);
  return sweep;
}

// What starts the program on a rank.
std::string program_of_ranks(const LaunchFlags& flags) {
  if (!flags.options.container.empty()) return "shardmark";
  if (!has_command("run"))
    throw UsageError(
        "this shardmark was built for analysis only (make build ANALYSIS=1): use a full build, or name a "
        "container that holds one with --container");
  return own_program();
}

// Becomes the launcher of ranks that run another command than a suite's `run`.
int become_launcher(LaunchFlags& flags, const Allocation& allocation) {
  const std::vector<std::string>& words = flags.arguments.all();
  for (const auto& [given, flag] : {std::pair(flags.resume, "--resume"),
                                    {flags.rerun_failed, "--rerun-failed"},
                                    {flags.report, "--report"},
                                    {flags.requeue, "--requeue"},
                                    {!flags.output.empty(), "--output"}})
    if (given)
      throw UsageError(fmt::format("launch {} measures no suite: leave out {}, or give it after {}",
                                   words.front(), flag, words.front()));
  read_variables(flags.options);
  Sweep sweep;
  sweep.command = make_launch_command(read_machine(), allocation, flags.options);
  sweep.run = {program_of_ranks(flags)};
  sweep.run.insert(sweep.run.end(), words.begin(), words.end());
  if (flags.print) {
    print_command(sweep);
    return kDone;
  }
  for (const auto& [name, value] : sweep.command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> all = sweep.command.arguments;
  all.insert(all.end(), sweep.run.begin(), sweep.run.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw SystemError(all.front() + " cannot be started: " + std::strerror(errno));
}

// Makes the sweep from the flags. The study's path stays empty if a number must be reserved for it.
Sweep make_sweep(LaunchFlags& flags, const Allocation& allocation) {
  const auto own = flags.arguments.own(), run_flags = flags.arguments.flags();
  if (own.size() != 1)
    throw UsageError("launch runs one suite, not " + std::to_string(own.size()) +
                     "; flags of `shardmark run` follow after --");
  flags.run = parse_run_flags(run_flags);
  flags.suite = read_suite(find_suite(own.front()), flags.run.overrides);
  // A start sets only its own settings: variables that other points of the suite set are unset first.
  for (const std::string& name : names_set(flags.suite.points)) ::unsetenv(name.c_str());
  Sweep sweep;
  sweep.resume = flags.resume;
  sweep.rerun_failed = flags.rerun_failed;
  // The ranks of a job before this one may still hold the study.
  sweep.waits_for_lock = flags.resume && (flags.requeue || number(variable("SLURM_RESTART_COUNT")) > 0);
  flags.options.on_gpus = flags.run.world.device == "cuda";
  const double timeout_s = flags.run.world.timeout_s;
  // The study is opened after the tests of nodes.
  const double tests_s = flags.suite.accept ? longest_tests_s(*flags.suite.accept) : 0;
  if (timeout_s > 0) sweep.start_limit_s = std::max(kStartS, timeout_s + kBeforeRanksS) + tests_s;
  std::error_code none;
  sweep.temporary = std::filesystem::temp_directory_path(none);
  sweep.study = flags.output;
  if (sweep.study.empty() && (flags.resume || flags.print))
    sweep.study = numbered_study(kStudies, suite_stem(own.front()), flags.resume);
  read_variables(flags.options);
  if (flags.resume) take_from_study(sweep.study, allocation.num_nodes, flags.options);
  sweep.command = make_launch_command(read_machine(), allocation, flags.options);
  sweep.run = {program_of_ranks(flags), "run", own.front()};
  return sweep;
}

// Prints the first screen of the study. If its suite judges nodes, writes the page and JUnit's XML beside it,
// for a ticket, and returns kWrong if a node is out.
int report_on(const std::string& study, bool judges_nodes) {
  const std::vector<StudyData> studies = read_studies({study});
  ReportInputs inputs;
  inputs.references = references_for(studies, reference_files());
  write_report(studies, inputs, {});
  return judges_nodes ? write_verdicts(study, studies, inputs) : kDone;
}

int launch(LaunchFlags flags) {
  const Allocation allocation = read_allocation(flags.options.launcher);
  if (is_command_of_ranks(flags.arguments.all().front())) return become_launcher(flags, allocation);
  // Decide how ranks are started, and reserve a name for the study unless one was given.
  Sweep sweep = make_sweep(flags, allocation);
  const std::string suite = flags.arguments.own().front(), stem = suite_stem(suite);
  std::optional<ReservedStudy> reserved;
  if (sweep.study.empty()) {
    make_folder_of_studies();
    sweep.study = reserved.emplace(kStudies, stem).path();
  }
  sweep.run.insert(sweep.run.end(), {"-o", sweep.study});
  for (const std::string& flag : flags.arguments.flags()) sweep.run.push_back(flag);
  // Group the points by the settings that their ranks need. Each group is one start.
  const std::vector<Point> plan = make_plan(flags.suite, {sweep.command.ranks});
  const auto starts = starts_of(plan);
  const auto sweep_of = [&](const StartOfPoints& start) {
    LaunchOptions options = flags.options;
    if (!flags.print)
      for (const char* const name : {kProgressVariable, kResumeVariable, kLaunchedVariable})
        options.variables.emplace_back(name);
    Sweep one = with_settings(sweep, start, options, allocation, flags.run.world);
    if (flags.print) return one;
    const char* const where = terminal_columns() > 0 ? kProgressOnTerminal : kProgressInLog;
    one.command.environment.emplace_back(kProgressVariable, where);
    one.command.environment.emplace_back(kResumeVariable, resume_command(flags, sweep.study));
    return one;
  };
  if (flags.suite.accept && !flags.resume && !flags.print) require_places_of_verdicts(sweep.study);
  if (flags.print) {
    for (const StartOfPoints& start : starts) {
      print_command(sweep_of(start));
      // The first start creates the study, and the others resume it.
      sweep.resume = true;
    }
    return kDone;
  }
  log_line(fmt::format("{}: {} -> {}{}; {}", ranks_text(sweep.command), suite, sweep.study,
                       flags.resume ? ", resuming" : "", extent_text(plan)));
  // Run all starts, with as many rounds as crashes make necessary.
  const SweepEnd end = run_starts(starts, sweep_of);
  if (flags.output.empty() && has_study(sweep.study)) link_newest(sweep.study, stem);
  if (end.stopped_by != 0) return after_stop(flags, end, sweep.study, allocation);
  const bool judges_nodes = flags.suite.accept.has_value();
  // A job that hung or crashed has tests of its nodes all the same.
  const bool reports = judges_nodes ? has_study(sweep.study) : flags.report && end.status <= kWrong;
  return reports ? std::max(end.status, report_on(sweep.study, judges_nodes)) : end.status;
}

std::function<int()> define_launch(CLI::App& app) {
  auto flags = std::make_shared<LaunchFlags>();
  flags->arguments.add_to(
      app, "suite",
      "the suite: a YAML file, or a name shown by shardmark list. Or collective, train or doctor, "
      "with its own arguments behind it: ranks are started for it likewise");
  add_value(app, "-n,--ranks", flags->options.ranks, values::kRanks,
            "default: one rank per GPU; without GPUs one per core, as far as memory goes");
  app.add_option(
      "-o,--output", flags->output,
      "the study; default: results/<suite>-0001.h5, -0002 ..., and results/<suite>.h5 links the newest");
  app.add_flag("--resume", flags->resume, "continue this study; without -o the newest one of this suite");
  app.add_flag("--rerun-failed", flags->rerun_failed,
               "with --resume: measure again what failed, see run --help")
      ->needs("--resume");
  add_value(app, "--launcher", flags->options.launcher, Word{{"mpirun", "srun", "flux"}},
            "mpirun, srun where Slurm has PMIx, or flux in a job of Flux")
      ->capture_default_str();
  offer(app.add_option("--launcher-flag", flags->options.flags,
                       "a flag passed on to the launcher; repeat it for each word")
            ->allow_extra_args(false),
        {});
  app.add_option("--container", flags->options.container,
                 "a command in front of the program on every rank; repeat it for each word: apptainer, exec, "
                 "--nv, x.sif")
      ->allow_extra_args(false);
  add_value(app, "--ranks-per-node", flags->options.ranks_per_node, values::kRanksPerNode,
            "ranks to start on each node; default: one for each GPU, else for each core");
  app.add_flag("--report", flags->report,
               "print the summary of the study at the end, as shardmark report does");
  app.add_flag("--print", flags->print, "print the command that starts the ranks, without starting it");
  app.add_flag("--requeue", flags->requeue,
               "in a job: SIGUSR1, ahead of its time limit (sbatch --signal=B:USR1@120), requeues it if it "
               "has finished "
               "a point; outside Slurm the exit status is then 6, for a script that submits the job again");
  return [flags] { return launch(*flags); };
}

const Registration<CommandEntry> launch_command{
    "launch", {"start the ranks of a suite, collective, train or doctor", define_launch}};

}  // namespace
}  // namespace shardmark

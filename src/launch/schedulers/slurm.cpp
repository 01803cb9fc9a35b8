// The script for sbatch of a Slurm job that runs a suite, or of a job array that runs several.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "launch/schedulers/job_text.h"
#include "launch/study_name.h"

namespace shardmark {
namespace {

constexpr int kMostDays = 9999;  // in seconds this fits into Slurm's 32 bits

// The long names of the most common one-letter options.
const std::vector<std::pair<char, const char*>> kLongNames = {
    {'A', "account"},    {'a', "array"},    {'C', "constraint"}, {'c', "cpus-per-task"},
    {'d', "dependency"}, {'D', "chdir"},    {'e', "error"},      {'G', "gpus"},
    {'J', "job-name"},   {'L', "licenses"}, {'M', "clusters"},   {'m', "distribution"},
    {'N', "nodes"},      {'n', "ntasks"},   {'o', "output"},     {'p', "partition"},
    {'q', "qos"},        {'t', "time"},     {'w', "nodelist"},   {'x', "exclude"},
};

// Environment variables of sbatch and the options that they set. Source: man sbatch, INPUT ENVIRONMENT
// VARIABLES.
constexpr std::pair<const char*, const char*> kOptionsOfVariables[] = {
    {"SBATCH_ACCOUNT", "account"},
    {"SBATCH_ACCTG_FREQ", "acctg-freq"},
    {"SBATCH_CLUSTERS", "clusters"},
    {"SBATCH_CONSTRAINT", "constraint"},
    {"SBATCH_CORE_SPEC", "core-spec"},
    {"SBATCH_CPUS_PER_GPU", "cpus-per-gpu"},
    {"SBATCH_DELAY_BOOT", "delay-boot"},
    {"SBATCH_DISTRIBUTION", "distribution"},
    {"SBATCH_EXPORT", "export"},
    {"SBATCH_GPU_BIND", "gpu-bind"},
    {"SBATCH_GPU_FREQ", "gpu-freq"},
    {"SBATCH_GPUS", "gpus"},
    {"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
    {"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
    {"SBATCH_GRES", "gres"},
    {"SBATCH_GRES_FLAGS", "gres-flags"},
    {"SBATCH_HINT", "hint"},
    {"SBATCH_JOB_NAME", "job-name"},
    {"SBATCH_MEM_PER_CPU", "mem-per-cpu"},
    {"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
    {"SBATCH_MEM_PER_NODE", "mem"},
    {"SBATCH_NETWORK", "network"},
    {"SBATCH_OPEN_MODE", "open-mode"},
    {"SBATCH_PARTITION", "partition"},
    {"SBATCH_PROFILE", "profile"},
    {"SBATCH_QOS", "qos"},
    {"SBATCH_REQ_SWITCH", "switches"},
    {"SBATCH_RESERVATION", "reservation"},
    {"SBATCH_SIGNAL", "signal"},
    {"SBATCH_THREAD_SPEC", "thread-spec"},
    {"SBATCH_TIMELIMIT", "time"},
    {"SBATCH_WCKEY", "wckey"},
};

std::string directives(const JobOptions& o) {
  const bool array = o.suites.size() > 1;
  Directives all("#SBATCH ");
  all.set("job-name", job_name(o));
  if (array) all.set("array", fmt::format("0-{}", o.suites.size() - 1));
  all.set("nodes", std::to_string(o.nodes));
  if (o.gpus_per_node > 0) all.set("gpus-per-node", std::to_string(o.gpus_per_node));
  all.set("exclusive", "");
  all.set("mem", "0");
  all.comment(o.time_reason);
  all.set("time", slurm_time(o.time_limit_s));
  all.comment("Signal only the batch shell, so that it stops its ranks in time and requeues the job:");
  all.set("signal", fmt::format("B:USR1@{}", o.signal_ahead_s));
  all.set("requeue", "");
  all.set("open-mode", "append");
  all.set("output", kResultsOfJobs + std::string(array ? "/slurm-%A_%a.log" : "/slurm-%j.log"));
  std::vector<std::string> without_form;
  // sbatch would take these variables from the environment of whoever submits. They are written into the
  // job, so that it means the same when it is submitted by hand. Flags come last, because they win over
  // variables for sbatch, too.
  for (const auto& [variable, option] : kOptionsOfVariables)
    if (const auto found = o.variables.find(variable); found != o.variables.end())
      if (!all.set_asked(option, found->second)) without_form.push_back(found->first + "=" + found->second);
  all.set_flags(parsed_flags(o.submit_flags, kLongNames), without_form);
  return all.text();
}

}  // namespace

std::string slurm_time(double seconds) {
  if (!(seconds >= 0 && seconds <= kMostDays * 86400.0))  // also refuses NaN
    throw UsageError(fmt::format("Slurm does not accept a job of {:g} days: give --time, at most {} days",
                                 seconds / 86400, kMostDays));
  const auto minutes = static_cast<int64_t>(std::ceil(seconds / 60));
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

std::string slurm_job(const JobOptions& o) {
  for (const std::string& suite : o.suites) require_one_line(suite);
  const bool array = o.suites.size() > 1;
  std::vector<std::string> stems;
  stems.reserve(o.suites.size());
  for (const std::string& suite : o.suites) stems.push_back(suite_stem(suite));
  std::string text = "#!/usr/bin/env bash\n";
  text +=
      "# Written by `shardmark submit`. Whatever ends it (its time limit, a failing node, scancel), every "
      "finished\n"
      "# point is kept; after a requeue it goes on with the same study.\n";
  text += directives(o) + "set -euo pipefail\n\n" + environment_lines(o, "mpirun");
  text += "suites=(" + quoted_words(o.suites) + ")\nnames=(" + quoted_words(stems) + ")\n";
  text += "task=${SLURM_ARRAY_TASK_ID:-0}\n";
  text += "job=" + std::string(array ? "${SLURM_ARRAY_JOB_ID}_$task" : "$SLURM_JOB_ID") + "\n\n";
  if (o.rerun_failed)
    text +=
        "rerun_failed=--rerun-failed    # once: after a requeue the study may know already\n"
        "if [[ ${SLURM_RESTART_COUNT:-0} != 0 ]] && grep -qs '\"due\":' " +
        quoted(o.study) + ".journal; then rerun_failed=; fi\n";
  const std::string study =
      o.study.empty() ? quoted(kResultsOfJobs) + "/\"${names[task]}-job$job.h5\"" : quoted(o.study);
  return text + "# exec: the signal reaches the program itself.\nexec " +
         launch_lines(o, "\"${suites[task]}\"", study, o.rerun_failed ? "$rerun_failed" : "") + "\n";
}

}  // namespace shardmark

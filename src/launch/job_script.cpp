// The text of a job.
#include "launch/job_script.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "launch/study_name.h"

namespace shardmark {
namespace {

constexpr int kMostDays = 9999;  // its seconds fit Slurm's 32 bits

void require_one_line(const std::string& text) {
  if (printable(text, "\t") != text)
    throw UsageError("a job script cannot hold the line break or control character in " + quoted_line(text));
}

// Directives are read by sbatch, not by a shell: quotes and blanks have no safe form there.
std::string directive(const std::string& name, const std::string& value) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./%:@,+=").find(c) != std::string_view::npos;
  };
  for (char c : value)
    if (!is_plain(c))
      throw UsageError(
          fmt::format("--{}: '{}' has a character that an #SBATCH line cannot hold; accepted are "
                      "letters, digits and -_./%:@,+=",
                      name, value));
  return fmt::format("#SBATCH --{}={}\n", name, value);
}

std::string words(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : " ") + quoted(text);
  return line;
}

std::string plain_name(std::string stem) {
  for (char& c : stem)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  return stem;
}

std::string directives(const JobOptions& o) {
  const bool array = o.suites.size() > 1;
  std::string text =
      directive("job-name", "shardmark-" + (array ? "suites" : plain_name(suite_stem(o.suites[0]))));
  if (array) text += directive("array", fmt::format("0-{}", o.suites.size() - 1));
  text += directive("nodes", std::to_string(o.nodes));
  if (o.gpus_per_node > 0) text += directive("gpus-per-node", std::to_string(o.gpus_per_node));
  text += "#SBATCH --exclusive\n" + directive("mem", "0");
  text += fmt::format("# {}\n", o.time_reason) + directive("time", slurm_time(o.time_limit_s));
  text += fmt::format(
      "# Signal only the batch shell, so that it stops its ranks in time and requeues the job:\n");
  text += directive("signal", fmt::format("B:USR1@{}", o.signal_ahead_s));
  text += "#SBATCH --requeue\n" + directive("open-mode", "append");
  return text + directive("output", o.results + (array ? "/slurm-%A_%a.log" : "/slurm-%j.log"));
}

}  // namespace

std::string quoted(const std::string& text) {
  require_one_line(text);
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string slurm_time(double seconds) {
  if (!(seconds >= 0 && seconds <= kMostDays * 86400.0))  // nor what is no number
    throw UsageError(fmt::format("Slurm does not accept a job of {:g} days: give --time, at most {} days",
                                 seconds / 86400, kMostDays));
  const auto minutes = static_cast<int64_t>(std::ceil(seconds / 60));
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

std::string job_script(const JobOptions& o) {
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
  if (!o.sbatch_flags.empty()) text += "# sbatch is given: " + words(o.sbatch_flags) + "\n";
  text += directives(o) + "set -euo pipefail\n\n";
  text += "cd " + quoted(o.folder) + "\n";
  text += "LAUNCHER=mpirun MPIRUN_FLAGS=() SRUN_FLAGS=() CONTAINER=() RANKS_PER_NODE=''\n";
  text += "env_file=" + quoted(o.env_file) + "\n";
  text +=
      "if [[ -e $env_file ]]; then set +eu; source \"$env_file\"; set -eu; fi    # not written for those\n";
  if (!o.launcher.empty()) text += "LAUNCHER=" + quoted(o.launcher) + "\n";
  if (o.ranks_per_node > 0) text += fmt::format("RANKS_PER_NODE={}\n", o.ranks_per_node);
  text +=
      "if [[ $LAUNCHER == srun ]]; then flags=(\"${SRUN_FLAGS[@]}\"); else flags=(\"${MPIRUN_FLAGS[@]}\"); "
      "fi\n";
  text += "suites=(" + words(o.suites) + ")\nnames=(" + words(stems) + ")\n";
  text += "task=${SLURM_ARRAY_TASK_ID:-0}\n";
  text += "job=" + std::string(array ? "${SLURM_ARRAY_JOB_ID}_$task" : "$SLURM_JOB_ID") + "\n\n";
  if (o.rerun_failed)
    text +=
        "rerun_failed=--rerun-failed    # once: after a requeue the study may know already\n"
        "if [[ ${SLURM_RESTART_COUNT:-0} != 0 ]] && grep -qs '\"due\":' " +
        quoted(o.study) + ".journal; then rerun_failed=; fi\n";
  text += "# exec: the signal reaches the program itself.\n";
  text += "exec " + quoted(o.program) + " launch \"${suites[task]}\" -o " +
          (o.study.empty() ? quoted(o.results) + "/\"${names[task]}-job$job.h5\"" : quoted(o.study)) +
          " \\\n  --resume --requeue --launcher \"$LAUNCHER\" "
          "\"${flags[@]/#/--launcher-flag=}\" \"${CONTAINER[@]/#/--container=}\" \\\n"
          "  ${RANKS_PER_NODE:+--ranks-per-node=$RANKS_PER_NODE}";
  if (o.rerun_failed) text += " $rerun_failed";
  if (!o.flags.empty()) text += " \\\n  -- " + words(o.flags);
  return text + "\n";
}

}  // namespace shardmark

// Writes the text of a job script.
#include "launch/job_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "launch/study_name.h"

namespace shardmark {
namespace {

constexpr int kMostDays = 9999;  // in seconds this fits into Slurm's 32 bits

void require_one_line(const std::string& text) {
  if (printable(text, "\t") != text)
    throw UsageError("a job script cannot hold the line break or control character in " + quoted_line(text));
}

bool is_plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./%:@,+=").find(c) != std::string_view::npos;
  });
}

// The #SBATCH lines, by the option that each sets; a later line replaces an earlier one of the same option.
class Directives {
 public:
  // Sets one of our own options. sbatch reads these lines, not a shell, and has no safe quoting for other
  // characters.
  void set(const std::string& name, const std::string& value) {
    if (!is_plain(value))
      throw UsageError(
          fmt::format("--{}: '{}' has a character that an #SBATCH line cannot hold; accepted are "
                      "letters, digits and -_./%:@,+=",
                      name, value));
    put(name, "--" + name + (value.empty() ? "" : "=" + value));
  }
  // Sets an option of the user. sbatch accepts double quotes around the value, unless it contains quotes or a
  // backslash. Returns false if the value cannot be written.
  bool set_asked(const std::string& name, const std::string& value) {
    if (printable(name + value, "") != name + value || value.find_first_of("\"\\'") != std::string::npos)
      return false;
    const std::string text = is_plain(value) ? value : "\"" + value + "\"";
    put(name, (name.size() == 1 ? "-" : "--") + name +
                  (value.empty() ? "" : (name.size() == 1 ? " " : "=") + text));
    return true;
  }
  void comment(const std::string& text) { lines_.push_back({"", "# " + text}); }
  std::string text() const {
    std::string all;
    for (const auto& [name, line] : lines_) all += (name.empty() ? "" : "#SBATCH ") + line + "\n";
    return all;
  }

 private:
  void put(const std::string& name, const std::string& line) {
    const auto before =
        std::find_if(lines_.begin(), lines_.end(), [&](auto& one) { return one.first == name; });
    if (before == lines_.end())
      lines_.emplace_back(name, line);
    else
      before->second = line;
  }
  std::vector<std::pair<std::string, std::string>> lines_;
};

// The long names of the most common one-letter options.
constexpr std::pair<char, const char*> kLongNames[] = {
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

struct SbatchFlag {
  std::string name, value;
};

// Parses flags in all forms: "--partition=gpu", "--partition" "gpu", "-p" "gpu", "-pgpu".
std::vector<SbatchFlag> parsed_flags(const std::vector<std::string>& words) {
  std::vector<SbatchFlag> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    SbatchFlag flag;
    const size_t equals = word.find('=');
    const bool is_long = word.starts_with("--");
    if (is_long) {
      flag.name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      if (equals != std::string::npos) flag.value = word.substr(equals + 1);
    } else if (word.size() > 1 && word[0] == '-') {
      flag.name = word.substr(1, 1);
      flag.value = word.substr(2);
      for (const auto& [letter, name] : kLongNames)
        if (word[1] == letter) flag.name = name;
    } else {
      continue;
    }
    const bool has_value = is_long ? equals != std::string::npos : !flag.value.empty();
    if (!has_value && i + 1 < words.size() && !words[i + 1].starts_with('-')) flag.value = words[++i];
    flags.push_back(flag);
  }
  return flags;
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
  Directives all;
  all.set("job-name", "shardmark-" + (array ? "suites" : plain_name(suite_stem(o.suites[0]))));
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
  all.set("output", o.results + (array ? "/slurm-%A_%a.log" : "/slurm-%j.log"));
  std::vector<std::string> without_form;
  for (const auto& [variable, option] : kOptionsOfVariables)
    if (const auto found = o.sbatch_variables.find(variable); found != o.sbatch_variables.end())
      if (!all.set_asked(option, found->second)) without_form.push_back(found->first + "=" + found->second);
  for (const SbatchFlag& flag : parsed_flags(o.sbatch_flags))
    if (!all.set_asked(flag.name, flag.value)) without_form.push_back("--" + flag.name + "=" + flag.value);
  if (!without_form.empty())
    all.comment("no #SBATCH line can hold this, which submit gives to sbatch: " + words(without_form));
  return all.text();
}

}  // namespace

std::string quoted(const std::string& text) {
  require_one_line(text);
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string slurm_time(double seconds) {
  if (!(seconds >= 0 && seconds <= kMostDays * 86400.0))  // also refuses NaN
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

#include "launch/schedulers/job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/text.h"
#include "launch/study_name.h"

namespace shardmark {
namespace {

// Whether a value needs no quotes in a directive.
bool is_plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./%:@,+=").find(c) != std::string_view::npos;
  });
}

std::string option_text(const std::string& name, const std::string& value) {
  const bool is_letter = name.size() == 1;
  return (is_letter ? "-" : "--") + name + (value.empty() ? "" : (is_letter ? " " : "=") + value);
}

// Each -l of PBS sets a resource, so "-l select=4" and "-l place=excl" are two options.
std::string option_key(const std::string& name, const std::string& value) {
  return name == "l" ? "l " + value.substr(0, value.find('=')) : name;
}

}  // namespace

// A word after a flag without a value is taken as its value unless it begins with a dash. The program does
// not know which flags of a scheduler take a value; a flag without one, such as --exclusive, is usually
// followed by another flag or by nothing. Words that belong to no flag are left out.
std::vector<SubmitFlag> parsed_flags(const std::vector<std::string>& words,
                                     const std::vector<std::pair<char, const char*>>& long_names) {
  std::vector<SubmitFlag> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    SubmitFlag flag;
    const size_t equals = word.find('=');
    const bool is_long = word.starts_with("--");
    if (is_long) {
      flag.name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      if (equals != std::string::npos) flag.value = word.substr(equals + 1);
    } else if (word.size() > 1 && word[0] == '-') {
      flag.name = word.substr(1, 1);
      flag.value = word.substr(2);
      for (const auto& [letter, name] : long_names)
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

void Directives::set(const std::string& name, const std::string& value) {
  if (!is_plain(value))
    throw UsageError(
        fmt::format("--{}: '{}' has a character that a line of {}options cannot hold; accepted are "
                    "letters, digits and -_./%:@,+=",
                    name, value, prefix_));
  put({option_key(name, value), option_text(name, value)});
}

// The value goes between double quotes. Batch systems differ in how they read quotes and backslashes
// inside, so that a value with one of them is refused, and so is one with a line break or control
// character.
bool Directives::write(const std::string& name, const std::string& value, bool is_flag) {
  if (printable(name + value, "") != name + value || value.find_first_of("\"\\'") != std::string::npos)
    return false;
  put({option_key(name, value), option_text(name, is_plain(value) ? value : "\"" + value + "\""), is_flag});
  return true;
}

bool Directives::set_asked(const std::string& name, const std::string& value) {
  return write(name, value, false);
}

void Directives::set_flags(const std::vector<SubmitFlag>& flags, std::vector<std::string> without_form) {
  for (const SubmitFlag& flag : flags)
    if (!write(flag.name, flag.value, true)) without_form.push_back("--" + flag.name + "=" + flag.value);
  if (!without_form.empty())
    comment(fmt::format("no {}line can hold this, which submit gives on the command line: {}", prefix_,
                        quoted_words(without_form)));
}

std::string Directives::text() const {
  std::string all;
  for (const Line& line : lines_) all += (line.option.empty() ? "" : prefix_) + line.text + "\n";
  return all;
}

// A line takes the place of the earlier line of the same option, as the last flag of a command line wins.
// So a user's flag replaces our own default. Lines that came from flags are not replaced: an option may be
// given several times.
void Directives::put(const Line& line) {
  const auto before = std::find_if(lines_.begin(), lines_.end(), [&](const Line& one) {
    return one.option == line.option && !one.is_flag;
  });
  if (before == lines_.end())
    lines_.push_back(line);
  else
    *before = line;
}

std::string job_name(const JobOptions& options) {
  if (options.suites.size() > 1) return "shardmark-suites";
  std::string stem = suite_stem(options.suites.front());
  for (char& c : stem)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  return "shardmark-" + stem;
}

void require_one_line(const std::string& text) {
  if (printable(text, "\t") != text)
    throw UsageError("a job script cannot hold the line break or control character in " + quoted_line(text));
}

// Between single quotes a shell takes every character literally, except for the single quote itself. That
// one becomes '\'': the quotes end, an escaped quote follows, and new quotes begin.
std::string quoted(const std::string& text) {
  require_one_line(text);
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string quoted_words(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : " ") + quoted(text);
  return line;
}

// The script itself runs under `set -eu` (and pipefail). The file of the site is not written for that: a
// reference to an unset variable, or a command that fails, would end the job, so that the checks are off
// while the file is read. What was given to submit comes after the file, and wins.
std::string environment_lines(const JobOptions& o, const std::string& launcher) {
  std::string text = "cd " + quoted(o.folder) + "\n";
  text += "LAUNCHER=" + launcher +
          " MPIRUN_FLAGS=() SRUN_FLAGS=() FLUX_FLAGS=() CONTAINER=() RANKS_PER_NODE=''\n";
  text += "env_file=" + quoted(o.env_file) + "\n";
  text +=
      "if [[ -e $env_file ]]; then set +eu; source \"$env_file\"; set -eu; fi    # not written for those\n";
  if (!o.launcher.empty()) text += "LAUNCHER=" + quoted(o.launcher) + "\n";
  if (o.ranks_per_node > 0) text += fmt::format("RANKS_PER_NODE={}\n", o.ranks_per_node);
  return text +
         "case $LAUNCHER in\n"
         "  srun) flags=(\"${SRUN_FLAGS[@]}\") ;;\n"
         "  flux) flags=(\"${FLUX_FLAGS[@]}\") ;;\n"
         "  *) flags=(\"${MPIRUN_FLAGS[@]}\") ;;\n"
         "esac\n";
}

// Each flag of the arrays becomes a flag of launch of its own: bash's ${array[@]/#/prefix} puts the prefix
// before every element, and an empty array leaves no word. RANKS_PER_NODE is passed on only if it is set.
std::string launch_lines(const JobOptions& o, const std::string& suite, const std::string& study,
                         const std::string& more) {
  std::string text = quoted(o.program) + " launch " + suite + " -o " + study +
                     " \\\n  --resume --requeue --launcher \"$LAUNCHER\" "
                     "\"${flags[@]/#/--launcher-flag=}\" \"${CONTAINER[@]/#/--container=}\" \\\n"
                     "  ${RANKS_PER_NODE:+--ranks-per-node=$RANKS_PER_NODE}";
  if (!more.empty()) text += " " + more;
  if (!o.flags.empty()) text += " \\\n  -- " + quoted_words(o.flags);
  return text;
}

// The job gives its own script (`$0`) to the command that submits, with one line changed: the first line
// that begins with `study=` names the study that this job began, so that the next job resumes it. The line
// also drops `rerun_failed`, because the study already knows which points are to be repeated. `timeout`
// runs launch in the foreground and sends it SIGUSR1 some seconds before the time limit. launch then ends
// its ranks and returns kOutOfTime if another job can go on, and the script submits itself again only for
// that status: a sweep that is done, or that makes no progress, ends here.
std::string resubmitting_lines(const JobOptions& o, const std::string& more, const std::string& resubmit) {
  const std::string& suite = o.suites.front();
  std::string flags = more, first = "study=";
  first += o.study.empty() ? quoted(kResultsOfJobs + std::string("/") + suite_stem(suite)) + "-job$job.h5"
                           : quoted(o.study);
  if (o.rerun_failed) {
    first += " rerun_failed=--rerun-failed";
    flags += (flags.empty() ? "" : " ") + std::string("${rerun_failed:-}");
  }
  std::string text = first +
                     "\n"
                     "# Nothing else warns the ranks ahead of the time limit. If they have finished a point "
                     "until then, this\n"
                     "# job is submitted again, with the study that it began.\n"
                     "status=0\n";
  text += fmt::format("timeout --foreground --preserve-status --signal=USR1 {} \\\n  {} || status=$?\n",
                      static_cast<int64_t>(o.time_limit_s) - o.signal_ahead_s,
                      launch_lines(o, quoted(suite), "\"$study\"", flags));
  text += fmt::format(
      "if [[ $status == {} ]]; then\n"
      "  line=$(printf 'study=%q' \"$study\") awk '/^study=/ && !n++ {{ print ENVIRON[\"line\"]; next }} {{ "
      "print "
      "}}' \"$0\" | {}\n"
      "  exit\n"
      "fi\n"
      "exit $status\n",
      static_cast<int>(kOutOfTime), resubmit);
  return text;
}

void refuse_time_limit(const std::vector<SubmitFlag>& flags, const std::string& name,
                       const std::string& text) {
  for (const SubmitFlag& flag : flags)
    if (flag.name == name && flag.value.find(text) != std::string::npos)
      throw UsageError(
          fmt::format("{}{} {} sets the time limit, which the job has to know: give it with --time",
                      flag.name.size() == 1 ? "-" : "--", flag.name, flag.value));
}

}  // namespace shardmark

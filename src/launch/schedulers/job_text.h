// What the jobs of all schedulers have in common: directives, and the lines that start `shardmark launch`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/job_script.h"

namespace shardmark {

// A flag as people write it for sbatch, qsub or flux batch.
struct SubmitFlag {
  std::string name, value;  // "partition", "gpu"
};

// Parses flags in all forms: "--partition=gpu", "--partition" "gpu", "-p" "gpu", "-pgpu". `long_names` gives
// the long form of letters.
std::vector<SubmitFlag> parsed_flags(const std::vector<std::string>& words,
                                     const std::vector<std::pair<char, const char*>>& long_names = {});

// The lines such as "#SBATCH --nodes=4". A line of ours gives way to a later one of the same option.
class Directives {
 public:
  explicit Directives(std::string prefix) : prefix_(std::move(prefix)) {}
  // Sets one of our own options; a name of one letter gets one dash. The batch system reads these lines, not
  // a shell, and has no safe quoting for other characters. Throws UsageError.
  void set(const std::string& name, const std::string& value);
  // Sets an option of the user. Batch systems accept double quotes around the value, unless it contains
  // quotes or a backslash. Returns false if the value cannot be written.
  bool set_asked(const std::string& name, const std::string& value);
  // The same for flags as they were given, which may repeat an option. A comment names those that cannot be
  // written.
  void set_flags(const std::vector<SubmitFlag>& flags, std::vector<std::string> without_form = {});
  void comment(const std::string& text) { lines_.push_back({"", "# " + text}); }
  std::string text() const;

 private:
  struct Line {
    std::string option, text;
    bool is_flag = false;  // it stays beside other flags of the same option
  };
  bool write(const std::string& name, const std::string& value, bool is_flag);
  void put(const Line& line);
  std::string prefix_;
  std::vector<Line> lines_;
};

// "shardmark-gpt2": with letters, digits, - and _ alone.
std::string job_name(const JobOptions& options);

// Throws UsageError for a line break or control character.
void require_one_line(const std::string& text);
std::string quoted_words(const std::vector<std::string>& texts);

// Goes to the folder of the job, and sets LAUNCHER, RANKS_PER_NODE and the arrays `flags` and CONTAINER from
// the environment file and the options. `launcher` is the default.
std::string environment_lines(const JobOptions& options, const std::string& launcher);

// "'program' launch SUITE -o STUDY --resume --requeue ...": the last command of a job, without a line end.
// `suite` and `study` are words of a shell, `more` further flags of launch.
std::string launch_lines(const JobOptions& options, const std::string& suite, const std::string& study,
                         const std::string& more = "");

// The last lines of a job on a system that neither signals it ahead of its time limit nor requeues it:
// `timeout` gives the signal, and if the sweep is not done but goes forward, `resubmit`, which reads a job
// from its standard input, gets this job with the study that it began.
std::string resubmitting_lines(const JobOptions& options, const std::string& more,
                               const std::string& resubmit);

// Throws UsageError if a flag of this name has this text, because `timeout` would not know the limit that it
// sets.
void refuse_time_limit(const std::vector<SubmitFlag>& flags, const std::string& name,
                       const std::string& text = "");

}  // namespace shardmark

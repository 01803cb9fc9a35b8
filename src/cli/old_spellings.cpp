// Tables of commands and flags that are spelled otherwise elsewhere. Flags of earlier versions that were
// named after a key of a suite need no row.
#include "cli/old_spellings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/text.h"
#include "plan/training_run.h"
#include "schema/axes.h"

namespace shardmark {
namespace {

struct OldCommand {
  const char *word, *instead;
};
constexpr std::array kOldCommands = {
    OldCommand{"completion", "shardmark --completion bash, or zsh"},
    OldCommand{"export", "shardmark report x.h5 --raw --csv DIR, or --raw --json"},
    OldCommand{"reference", "shardmark list reference; to add a study, shardmark report x.h5 --share DIR"},
    OldCommand{"interconnect", "shardmark predict --model gpt2_xl --step 400ms"}};

struct OldFlag {
  const char *commands, *flag, *instead;
};
constexpr const char* kWithSuites = "run plan train launch submit";
constexpr std::array kOldFlags = {
    OldFlag{
        "collective", "-n",
        "the number of ranks in all commands, shardmark launch -n 8 collective ...; iterations are --iters"},
    OldFlag{"collective", "-g", "one rank has one GPU; shardmark launch -n 8 collective ... takes 8"},
    OldFlag{"launch", "--nproc_per_node", "that is --ranks-per-node here"},
    OldFlag{"launch", "--nproc-per-node", "that is --ranks-per-node here"},
    OldFlag{"launch", "--nnodes",
            "launch takes the nodes of its job; shardmark submit --nodes N asks for them"},
    OldFlag{"submit", "--signal-ahead", "that is --submit-flag=--signal=B:USR1@SECONDS now"},
    OldFlag{"submit", "--results", "studies and logs go to results/; -o names another study"},
    OldFlag{"submit", "--sbatch-flag", "that is --submit-flag now, for every batch system"},
    OldFlag{"run train launch submit", "--memory-limit", "that is --memory now"},
    OldFlag{"report predict", "--restart", "that is --failures restart=TIME now"},
    OldFlag{"report predict", "--checkpoint-write", "that is --failures checkpoint_write=TIME now"},
    OldFlag{"report predict", "--checkpoint-read", "that is --failures checkpoint_read=TIME now"},
    OldFlag{"report predict", "--watts", "that is --failures watts=NUMBER now"}};

// Keys whose flags had another name.
struct OldKey {
  const char *flag, *key;
};
constexpr std::array kOldKeys = {OldKey{"--clip", "clip_norm"}, OldKey{"--recompute", "checkpointing"},
                                 OldKey{"--time-limit", "sampling.time_limit"}, OldKey{"--seed", "seed"}};

bool is_word_of(const std::string& words, const std::string& word) {
  std::istringstream all(words);
  for (std::string one; all >> one;)
    if (one == word) return true;
  return false;
}

// The key of --set that does what this flag did; "" if there is none. Most flags of earlier versions were
// named after their key: --accumulation for accumulation. Keys that have a flag today are not looked at.
std::string key_of_old_flag(const std::string& command, const std::string& flag) {
  for (const OldKey& old : kOldKeys)
    if (flag == old.flag) return old.key;
  if (!flag.starts_with("--")) return "";
  std::string key = flag.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  bool found = false;
  for_each_axis([&](const AxisRow& axis) { found = found || (axis.flag == nullptr && key == axis.key); });
  if (command == "train")
    for (const Knob& knob : kKnobs)
      found = found || (knob.flag == nullptr && knob.key != nullptr && key == knob.key);
  return found ? key : "";
}

}  // namespace

std::string instead_of_command(const std::string& word) {
  for (const OldCommand& old : kOldCommands)
    if (word == old.word) return fmt::format("there is no command {} now: {}", word, old.instead);
  return "";
}

std::string instead_of_flag(const std::string& command, const std::vector<std::string>& unknown,
                            const std::vector<std::string>& words) {
  for (const std::string& word : unknown) {
    if (!word.starts_with('-')) continue;
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    for (const OldFlag& old : kOldFlags)
      if (flag == old.flag && is_word_of(old.commands, command))
        return fmt::format("{}: {}", flag, old.instead);
    if (!is_word_of(kWithSuites, command)) continue;
    const std::string key = key_of_old_flag(command, flag);
    if (key.empty()) continue;
    std::string value = equals == std::string::npos ? "VALUE" : word.substr(equals + 1);
    if (const auto at = std::find(words.begin(), words.end(), flag);
        at != words.end() && at + 1 != words.end() && !(at + 1)->starts_with('-'))
      value = *(at + 1);
    const bool hands_on = command == "launch" || command == "submit";
    return fmt::format("{} is a key of --set: {}--set {}", flag, hands_on ? "-- " : "",
                       shell_word(key + "=" + value));
  }
  return "";
}

}  // namespace shardmark

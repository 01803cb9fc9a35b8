// Words of the help, a row for each command. A new command needs a row here: its group on the first screen,
// three examples, and its flags that most people need. tests/cli/help.sh measures the screens.
#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {
namespace {

constexpr size_t kWidth = 80;

struct Example {
  const char *line, *meaning;
};

struct CommandHelp {
  const char *name, *group;
  std::array<Example, 3> examples;
  const char* common;  // arguments and flags, by any of their names; "": all
};

constexpr CommandHelp kCommands[] = {
    {"launch",
     "Measure",
     {{{"shardmark launch quick", "all strategies, here"},
       {"shardmark launch gpu-strategies -n 8 --report", "8 ranks, then the report"},
       {"shardmark launch scaling -n 8 -- --steps 50", "flags of run after --"}}},
     "suite flags --ranks --output --resume --rerun-failed --report --launcher --print"},
    {"submit",
     "Measure",
     {{{"shardmark submit --nodes 4 --gpus-per-node 8 scaling", "32 GPUs"},
       {"shardmark submit --to flux --nodes 2 collectives --print", "the job, for Flux"},
       {"shardmark submit --nodes 4 scaling -- --ranks 8 16 32", "flags of run"}}},
     "suites flags --to --nodes --gpus-per-node --time --output --rerun-failed --submit-flag --print"},
    {"run",
     "Measure",
     {{{"mpirun -n 4 shardmark run strategies -o x.h5", "on 4 ranks"},
       {"mpirun -n 4 shardmark run strategies -o x.h5 --strategy ddp fsdp", "some"},
       {"mpirun -n 4 shardmark run quick -o y.h5 --set clip_norm=1", "any key"}}},
     "suite --output --resume --rerun-failed --quiet --memory --trace --device --ranks --model "
     "--strategy --batch-size --precision --steps --repeats --set"},
    {"collective",
     "Measure",
     {{{"shardmark launch -n 2 collective all_reduce -b 8 -e 128M -f 2", "sizes"},
       {"mpirun -n 8 shardmark collective all_gather -b 1G -e 1G --iters 50", "one size"},
       {"mpirun -n 4 shardmark collective reduce -d half --op max", "a type"}}},
     "operation --minbytes --maxbytes --stepfactor --datatype --op --iters --check --output --device "
     "--transport"},
    {"train",
     "Measure",
     {{{"shardmark launch -n 2 train --model gpt2 --strategy zero3", "flags"},
       {"mpirun -n 2 shardmark train suites/train/gpt2.yaml --lr 3e-4", "a file"},
       {"mpirun -n 4 shardmark train run.yaml --checkpoint ckpt --resume", "go on"}}},
     "file --model --data --strategy --optimizer --precision --batch-size --steps --lr --schedule "
     "--eval-every --output --checkpoint --checkpoint-every --resume --set --device"},
    {"doctor",
     "Before",
     {{{"shardmark doctor", "this machine"},
       {"mpirun -n 8 shardmark doctor", "all ranks of a job"},
       {"mpirun -n 16 shardmark doctor --pairs --html links.html", "every link"}}},
     "--strict --pairs --halve --html --json --device"},
    {"plan",
     "Before",
     {{{"shardmark plan gpt2 -n 8", "needs of each strategy"},
       {"shardmark plan llama -n 8 --memory 40GiB", "what does not fit"},
       {"shardmark plan --step \"fsdp(prefetch=2)\" -n 8", "the instructions of a step"}}},
     "suite -n --memory --strategy --model --batch-size --precision --set --step --table --all --explain "
     "--json"},
    {"list",
     "Before",
     {{{"shardmark list", "everything, a line each"},
       {"shardmark list reference", "machines that were measured"},
       {"shardmark list fsdp", "its options and their defaults"}}},
     ""},
    {"report",
     "After",
     {{{"shardmark report results/quick.h5", "the first screen"},
       {"shardmark report results/quick.h5 --table memory --explain", "one table"},
       {"shardmark report results/quick.h5 --raw --csv folder", "for pandas, R"}}},
     "studies --table --all --explain --html --plots --csv --json --raw --markdown --overwrite --price"},
    {"compare",
     "After",
     {{{"shardmark compare old.h5 new.h5", "two launches"},
       {"shardmark compare --old a*.h5 --new b*.h5", "several: a verdict"},
       {"shardmark compare --baseline base.json b*.h5", "against a file in CI"}}},
     "studies --old --new --baseline --write-baseline --reference --margin --table --all --junit"},
    {"predict",
     "After",
     {{{"shardmark predict x.h5 --ranks 8..1024 --network ndr400", "more ranks"},
       {"shardmark predict x.h5 --ranks 64 --layouts -o layouts.yaml", "layouts to try"},
       {"shardmark predict --model gpt2_xl --step 400ms", "by links"}}},
     "studies --ranks --network --ranks-per-node --strategy --global-batch --memory --price --layouts "
     "--output --table --all --failures --model --step"},
    {"import",
     "After",
     {{{"shardmark import nccl.log -o theirs.h5 --nodes 2", "nccl-tests"},
       {"shardmark import osu.txt -o theirs.h5 --ranks 16 --transport mpi", "OSU"},
       {"shardmark report theirs.h5", "any study"}}},
     ""},
};
constexpr const char* kGroups[] = {"Measure", "Before", "After"};

const CommandHelp* help_of(const std::string& command) {
  const auto* const found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const CommandHelp& one) { return command == one.name; });
  return found == std::end(kCommands) ? nullptr : found;
}

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// "left  right", where right is wrapped and continues below itself. If the left part reaches into the right
// column, the right part begins on a line of its own.
std::string two_columns(const std::string& left, const std::string& right, size_t column) {
  std::string text = "  " + left;
  if (right.empty()) return text + "\n";
  size_t at = text.size();
  if (at + 2 > column) text += "\n", at = 0;
  bool is_first = true;
  for (const std::string& line : wrapped(right, kWidth - column)) {
    text += (is_first ? std::string(column - at, ' ') : "\n" + std::string(column, ' ')) + line;
    is_first = false;
  }
  return text + "\n";
}

// "WORD" and "auto, cpu, cuda" of "WORD:auto, cpu, cuda". CLI11 joins the name of the type and the
// description of the validator in this form; takes() (values.h) sets both. A flag without a value has the
// type size 0.
std::pair<std::string, std::string> type_and_range(const CLI::Option& option) {
  const std::string text = option.get_type_size() == 0 ? "" : option.get_type_name();
  const size_t colon = text.find(':');
  return colon == std::string::npos ? std::pair(text, std::string())
                                    : std::pair(text.substr(0, colon), text.substr(colon + 1));
}

// All names of a flag, "-n,--ranks", or the name of a positional argument.
std::string spelling_of(const CLI::Option& option) {
  return option.nonpositional() ? option.get_name(false, true) : option.get_name(true);
}

// A line of --help. A short list of words stands in place of the type: "--device auto|cpu|cuda". Longer
// lists and the ranges of numbers are only in --help-all.
std::string short_line(const CLI::Option& option) {
  const auto [type, range] = type_and_range(option);
  std::string left = spelling_of(option);
  constexpr size_t kShortList = 16;
  if (type == "WORD" && range.size() <= kShortList) {
    std::string words = range;
    for (size_t at = 0; (at = words.find(", ", at)) != std::string::npos;) words.replace(at, 2, "|");
    left += " " + words;
  } else if (!type.empty() && option.nonpositional()) {
    left += " " + type;
  }
  constexpr size_t kColumn = 28;
  return two_columns(left, option.get_description(), kColumn);
}

// A line of --help-all, with the range, the default and whether the option is required in parentheses. The
// default is left out if the description itself speaks of one.
std::string long_line(const CLI::Option& option) {
  const auto [type, range] = type_and_range(option);
  std::string left = spelling_of(option), right = option.get_description();
  if (!type.empty()) left += " " + type;
  std::vector<std::string> notes;
  if (type == "WORD")
    left += ":" + range;
  else if (!range.empty())
    notes.push_back(range);
  if (const std::string value = option.get_default_str();
      option.get_type_size() != 0 && !value.empty() && right.find("default") == std::string::npos)
    notes.push_back("default: " + value);
  if (option.get_required()) notes.emplace_back("required");
  if (!notes.empty()) right += fmt::format(" ({})", fmt::join(notes, "; "));
  constexpr size_t kColumn = 30;
  return two_columns(left, right, kColumn);
}

// CLI11 hides options whose group has no name.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

bool is_help(const CLI::App& app, const CLI::Option* option) {
  return option == app.get_help_ptr() || option == app.get_help_all_ptr();
}

std::string head_of(const CLI::App& app, const std::string& name) {
  std::string usage = name + " [FLAGS]";
  for (const CLI::Option* option : options_of(app))
    if (!option->nonpositional()) {
      const std::string text = option->get_name(true) + (option->get_items_expected_max() > 1 ? "..." : "");
      usage += option->get_required() ? " " + text : " [" + text + "]";
    }
  return fmt::format("{}: {}\n\nUsage: {}\n", name, app.get_description(), usage);
}

// Every flag, in its groups.
std::string all_flags(const CLI::App& app) {
  std::string text, positional;
  std::vector<std::string> groups;
  for (const CLI::Option* option : options_of(app))
    if (!option->nonpositional())
      positional += long_line(*option);
    else if (std::find(groups.begin(), groups.end(), option->get_group()) == groups.end())
      groups.push_back(option->get_group());
  if (!positional.empty()) text += "\nPositionals:\n" + positional;
  for (const std::string& group : groups) {
    text += "\n" + group + ":\n";
    for (const CLI::Option* option : options_of(app))
      if (option->nonpositional() && option->get_group() == group) text += long_line(*option);
  }
  return text;
}

// The flags of --help: those that the command's row names, by any of their names, or all if it names none.
// The last line tells how many are left out.
std::string common_flags(const CLI::App& app, const CommandHelp* help) {
  std::set<const CLI::Option*> common;
  std::istringstream words(help == nullptr ? "" : help->common);
  for (std::string word; words >> word;)
    for (const CLI::Option* option : options_of(app))
      if (option->check_name(word)) common.insert(option);
  std::string text;
  size_t left_out = 0;
  for (const CLI::Option* option : options_of(app)) {
    if (is_help(app, option)) continue;
    if (common.empty() || common.contains(option))
      text += short_line(*option);
    else
      ++left_out;
  }
  if (!text.empty()) text = "\n" + text;
  if (left_out > 0)
    text += fmt::format("\n--help-all shows {} more flag{}.\n", left_out, left_out == 1 ? "" : "s");
  return text;
}

std::string examples_of(const CommandHelp* help) {
  if (help == nullptr) return "";
  size_t width = 0;
  for (const Example& one : help->examples) width = std::max(width, std::string_view(one.line).size());
  std::string text = "\n";
  for (const Example& one : help->examples)
    text += fmt::format("  {:<{}}  # {}\n", one.line, width, one.meaning);
  return text;
}

std::string footer_of(const CLI::App& app) {
  if (app.get_footer().empty()) return "";
  std::string text = "\n";
  for (const std::string& line : wrapped(app.get_footer(), kWidth)) text += line + "\n";
  return text;
}

// The commands, in the order of the rows above. A build without LibTorch lacks some of them; they have no
// line.
std::string first_screen(const CLI::App& app) {
  std::string text = app.get_description() + "\n\nUsage: shardmark COMMAND [FLAGS]\n";
  constexpr size_t kColumn = 14;
  for (const std::string group : kGroups) {
    std::string lines;
    for (const CommandHelp& help : kCommands)
      if (help.group == group)
        if (const CLI::App* command = command_of(app, help.name))
          lines += two_columns(help.name, command->get_description(), kColumn);
    if (!lines.empty()) text += "\n" + group + "\n" + lines;
  }
  return text +
         "\nshardmark COMMAND --help | --help-all; shardmark --help-all | --version |\n"
         "--completion bash|zsh\n"
         "Status: 0 done, 1 wrong, failed or slower, 2 usage, 3 the system failed,\n"
         "4 undecided, 5 nothing moved.\n";
}

std::string whole_help(const CLI::App& app, const std::string& name) {
  return head_of(app, name) + examples_of(help_of(app.get_name())) + all_flags(app) + footer_of(app);
}

}  // namespace

// CLI11 calls this for the program, which has no parent, and for a command. AppFormatMode::All is
// --help-all.
std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  if (app->get_parent() != nullptr) {
    const CommandHelp* const help = help_of(app->get_name());
    ENSURE(help != nullptr, "no row of help for command " + app->get_name());
    if (mode == CLI::AppFormatMode::All) return whole_help(*app, name);
    return head_of(*app, name) + examples_of(help) + common_flags(*app, help) + footer_of(*app);
  }
  std::string text = first_screen(*app);
  if (mode == CLI::AppFormatMode::All)
    for (const CommandHelp& help : kCommands)
      if (const CLI::App* command = command_of(*app, help.name))
        text += "\n\n" + whole_help(*command, "shardmark " + command->get_name());
  return text;
}

}  // namespace shardmark

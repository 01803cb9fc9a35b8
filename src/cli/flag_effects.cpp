// A row for each command: the flags that always have an effect, and those that have one only together with
// others. If a flag is in no row, any use of its command throws, so a new flag cannot be forgotten.
#include "cli/flag_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "analysis/tables/names.h"
#include "base/error.h"
#include "base/text.h"
#include "schema/axes.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

// The flags as they were typed. A flag that the command does not have counts as not given, so a rule may ask
// about any flag.
class Given {
 public:
  explicit Given(const CLI::App& app) : app_(app) {}

  bool has(const std::string& flag) const {
    const CLI::Option* const option = app_.get_option_no_throw(flag);
    return option != nullptr && option->count() > 0;
  }
  std::vector<std::string> values(const std::string& flag) const {
    return has(flag) ? app_.get_option(flag)->results() : std::vector<std::string>();
  }
  std::string value(const std::string& flag) const {
    const std::vector<std::string> all = values(flag);
    return all.empty() ? "" : all.back();
  }
  // Whether the flag writes a file; - is the standard output.
  bool writes_file(const std::string& flag) const { return has(flag) && value(flag) != "-"; }
  // Whether --set gives this, such as "eval_batches=0".
  bool sets(const std::string& text) const {
    const std::vector<std::string> texts = values("--set");
    return std::find(texts.begin(), texts.end(), text) != texts.end();
  }
  // Whether --table selects one of these tables, or is not given.
  bool shows(const std::vector<std::string>& tables) const {
    const std::vector<std::string> words = values("--table");
    return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
             return !table_now(word).empty() ||  // is refused, with the name that the table has now
                    std::any_of(tables.begin(), tables.end(),
                                [&](const std::string& table) { return is_called(table, word); });
           });
  }

 private:
  const CLI::App& app_;
};

// A flag that has an effect only together with others, or only without others. If it is given and `acts` is
// false, the command line is refused.
struct FlagRule {
  const char* flag;
  bool (*acts)(const Given& given);
  const char* because;  // "--price changes nothing here: {}"
};

// The options of a command, by any of their names. Positional arguments are named without dashes.
struct CommandRow {
  std::string always;
  std::vector<FlagRule> sometimes = {};
};

constexpr const char* kNothingReplaced =
    "it replaces files that are there already, and no flag writes any; leave it out";
constexpr const char* kOnlyDuration =
    "a sustained run takes its --duration, whatever its steps; leave out one of them";
constexpr const char* kNoComparison =
    "--write-baseline compares nothing and prints no tables; leave out one of them";

bool writes_tables(const Given& given) { return given.writes_file("--csv"); }
bool has_no_duration(const Given& given) { return !given.has("--duration"); }
bool compares(const Given& given) { return !given.has("--write-baseline"); }

constexpr const char* kTables = "--table --all --explain --csv --json --markdown ";
constexpr const char* kWorld = "--device --threads --timeout --bind ";

const std::map<std::string, CommandRow>& rows() {
  static const FlagRule of_steps = {"--steps", has_no_duration, kOnlyDuration};
  static const std::map<std::string, CommandRow> table = {
      {"report",
       {std::string(kTables) + "studies --html --openmetrics --plots --share",
        {{"--price",
          [](const Given& given) {
            return given.shows({"strategies"}) || (given.has("--failures") && given.shows({"goodput"}));
          },
          "it adds costs to the table strategies, which --table leaves out; add --table strategies"},
         {"--raw", [](const Given& given) { return given.has("--csv") || given.has("--json"); },
          "it says what --csv DIR and --json write; add one of them"},
         {"--failures", [](const Given& given) { return given.shows({"goodput"}); },
          "it adds the table goodput, which --table leaves out; add --table goodput"},
         {"--link", [](const Given& given) { return given.shows({"interconnects"}); },
          "it is for the table interconnects, which --table leaves out; add --table interconnects"},
         {"--overwrite",
          [](const Given& given) {
            return writes_tables(given) || given.has("--html") || given.has("--openmetrics") ||
                   given.has("--plots") || given.has("--share");
          },
          kNothingReplaced}}}},
      {"predict",
       {std::string(kTables) +
            "studies --ranks --network --node-link --ranks-per-node --strategy --batch-size --global-batch "
            "--model --precision --link --plots --trace --output",
        {{"--step", [](const Given& given) { return given.shows({"interconnects"}); },
          "it adds the table interconnects, which --table leaves out; add --table interconnects"},
         {"--price",
          [](const Given& given) {
            return given.shows({"best", "predictions"}) ||
                   (given.has("--failures") && given.shows({"goodput"}));
          },
          "it adds costs to the tables best, predictions and goodput, which --table leaves out; add --table "
          "best"},
         {"--memory",
          [](const Given& given) {
            return given.shows({"best", "predictions"}) ||
                   (given.has("--layouts") && given.shows({"predicted_layouts"}));
          },
          "it says what is recommended in the tables best, predictions and predicted_layouts, which --table "
          "leaves out; add --table best"},
         {"--failures", [](const Given& given) { return given.has("--plots") || given.shows({"goodput"}); },
          "it adds the table goodput, which --table leaves out; add --table goodput"},
         {"--layouts",
          [](const Given& given) { return given.has("--output") || given.shows({"predicted_layouts"}); },
          "it adds the table predicted_layouts, which --table leaves out; add --table predicted_layouts"},
         {"--overwrite",
          [](const Given& given) {
            return writes_tables(given) || given.has("--plots") || given.has("--trace") ||
                   given.has("--output");
          },
          kNothingReplaced}}}},
      {"compare",
       {"studies --old --new --baseline --reference --write-baseline --junit",
        {{"--margin", compares, kNoComparison},
         {"--table", compares, kNoComparison},
         {"--all", compares, kNoComparison},
         {"--explain", compares, kNoComparison},
         {"--csv", compares, kNoComparison},
         {"--json", compares, kNoComparison},
         {"--markdown", compares, kNoComparison},
         {"--overwrite", [](const Given& given) { return writes_tables(given) || given.has("--junit"); },
          kNothingReplaced}}}},
      {"plan",
       {std::string(kTables) + "suite --step --rank -n --memory --repeats --duration --set",
        {of_steps, {"--overwrite", writes_tables, kNothingReplaced}}}},
      {"launch",
       {"suite flags -n --output --resume --rerun-failed --launcher --launcher-flag --container "
        "--ranks-per-node --print",
        {{"--report", [](const Given& given) { return !given.has("--print"); },
          "--print starts nothing that could be reported; leave out one of them"},
         {"--requeue", [](const Given& given) { return !given.has("--print"); },
          "--print starts nothing that could be requeued; leave out one of them"}}}},
      {"submit",
       {"suites flags --to --nodes --gpus-per-node --ranks-per-node --time --output --rerun-failed "
        "--launcher "
        "--submit-flag --env --print"}},
      {"list", {"names --all"}},
      {"import", {"files --output --device --ranks --nodes --ranks-per-node --transport --link --operation"}},
      {"run",
       {std::string(kWorld) +
            "suite --output --resume --rerun-failed --quiet --memory --check-collectives --trace "
            "--openmetrics --transport --repeats --repetition --duration --set",
        {of_steps,
         {"--overwrite", [](const Given& given) { return given.has("--trace"); },
          "it replaces traces, and there is no --trace; a study is not overwritten, name another with -o"}}}},
      {"train",
       {std::string(kWorld) +
            "file --transport --batch-size --global-batch --steps --epochs --lr --schedule --set "
            "--output --checkpoint --checkpoint-every --resume --weights --save-weights --trace "
            "--memory",
        {{"--eval-every", [](const Given& given) { return !given.sets("eval_batches=0"); },
          "eval_batches=0 evaluates nothing; leave out one of them"},
         {"--overwrite",
          [](const Given& given) { return given.has("--save-weights") || given.has("--trace"); },
          "it needs --save-weights or --trace: a study is not overwritten, name another with -o"}}}},
      {"collective",
       {std::string(kWorld) +
            "operation --transport --minbytes --maxbytes --stepfactor --datatype --parts --iters "
            "--warmup_iters --check --output",
        {{"--stepbytes", [](const Given& given) { return !given.has("--stepfactor"); },
          "sizes grow by --stepfactor; leave out one of them"},
         {"--op",
          [](const Given& given) {
            return given.value("--op") == "sum" || specs::operation(given.value("operation")).reduces;
          },
          "the operation reduces nothing; leave it out"}}}},
      {"doctor",
       {std::string(kWorld) + "--output --json --strict --pairs --topology --halve --html --junit",
        {{"--transport", [](const Given& given) { return given.has("--pairs"); },
          "nothing moves between ranks without --pairs; leave it out"},
         {"--overwrite", [](const Given& given) { return given.has("--html") || given.has("--junit"); },
          kNothingReplaced}}}},
  };
  return table;
}

// Whether an option is the flag of an axis; plan/effects.h decides when those have an effect.
bool is_of_axis(const CLI::Option& option) {
  bool found = false;
  for_each_axis(
      [&](const AxisRow& axis) { found = found || (axis.flag != nullptr && option.check_name(axis.flag)); });
  return found;
}

bool is_among(const CLI::Option& option, const std::string& names) {
  std::istringstream words(names);
  for (std::string word; words >> word;)
    if (option.check_name(word)) return true;
  return false;
}

}  // namespace

void refuse_idle_flags(const std::string& command, const CLI::App& app) {
  const auto row = rows().find(command);
  ENSURE(row != rows().end(), "no row for command " + command);
  const Given given(app);
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr() || option == app.get_help_all_ptr()) continue;
    // Every option of the command is looked up, also those that were not given. So a new flag without a
    // place in the table is found by the first command line that anybody types.
    const auto rule = std::find_if(row->second.sometimes.begin(), row->second.sometimes.end(),
                                   [&](const FlagRule& one) { return option->check_name(one.flag); });
    const bool has_rule = rule != row->second.sometimes.end();
    ENSURE(has_rule || is_among(*option, row->second.always) || is_of_axis(*option),
           "no rule says when " + option->get_name() + " of " + command + " acts");
    if (has_rule && option->count() > 0 && !rule->acts(given))
      throw UsageError(fmt::format("{} changes nothing here: {}", rule->flag, rule->because));
  }
}

}  // namespace shardmark

// A Choice is a name with options, as a suite writes it: `ddp`, or `{fsdp: {shard: full}}`. Models, data
// sources, strategies and optimizers are choices. An OptionSpec says what an option accepts and what it is by
// default.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schema/options.h"

namespace shardmark {

struct Choice {
  std::string name;
  Options options = {};

  bool operator==(const Choice&) const = default;
};

// choice: a choice among the options, `ddp: {reduction: {topk: {ratio: 0.1}}}`; stored as its text.
enum class OptionType { integer, number, boolean, text, choice };

struct ChoiceKind;

struct OptionSpec {
  std::string key;
  OptionType type;
  OptionValue default_value;               // nothing: the option is required
  std::string description;                 // with its unit
  std::vector<std::string> accepted = {};  // of a text; empty: any
  double minimum = -1e300;                 // of a number or integer
  double maximum = 1e300;
  const ChoiceKind& (*kind)() = nullptr;  // of a choice
};

using OptionTable = std::vector<OptionSpec>;

// What there is to choose from: strategies, models ...
struct ChoiceKind {
  std::string noun;                // "strategy"
  std::vector<std::string> names;  // all that are known
  const OptionTable& (*options)(const std::string& name);
  void (*check)(const Choice& resolved) = [](const Choice&) {};  // UsageError where options contradict
};

// The choice with every default filled in, options in the table's order (so that equal choices print alike).
// where(key) prefixes an error with its place: "suites/x.yaml:7:12: ". Throws UsageError: unknown option
// (known ones listed), wrong type, value not accepted, required option missing.
using Where = std::function<std::string(const std::string& key)>;
Choice resolve(const Choice& choice, const OptionTable& table, const std::string& noun,
               const Where& where = {});

// Without the options that are at their defaults: for people.
Choice without_defaults(const Choice& choice, const OptionTable& table);

// "fsdp(shard=full, prefetch=1)", "ddp(reduction=topk(ratio=0.1))"; just the name without options.
std::string to_text(const Choice& choice);
// The inverse of to_text; also reads "fsdp:shard=full". Throws UsageError.
Choice choice_from_text(const std::string& text);
// As choice_from_text, but a text that is no choice is a name as a whole: 'GPT-3 (175B)'. A study holds such
// names where it was imported, or where a later program wrote it. to_text() gives the text back.
Choice choice_or_name(const std::string& text);

}  // namespace shardmark

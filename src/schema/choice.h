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

// `choice`: the option is a choice itself, as in `ddp: {reduction: {topk: {ratio: 0.1}}}`. It is stored as
// text.
enum class OptionType { integer, number, boolean, text, choice };

struct ChoiceKind;

struct OptionSpec {
  std::string key;
  OptionType type;
  OptionValue default_value;               // no value: the option is required
  std::string description;                 // includes the unit
  std::vector<std::string> accepted = {};  // for text; empty: any text
  double minimum = -1e300;                 // for numbers and integers
  double maximum = 1e300;
  const ChoiceKind& (*kind)() = nullptr;  // for choices
  // The option came after studies had been written without it. resolve() leaves it out at its default, so
  // that such studies and checkpoints are still of the same points; who reads it needs the default again.
  bool is_later = false;
};

using OptionTable = std::vector<OptionSpec>;

// One kind of choice, such as strategies or models, and all that exist of it.
struct ChoiceKind {
  std::string noun;                // "strategy"
  std::vector<std::string> names;  // all known names
  const OptionTable& (*options)(const std::string& name);
  // Throws UsageError if options contradict each other.
  void (*check)(const Choice& resolved) = [](const Choice&) {};
};

// Returns the choice with every default filled in (but those of later options) and the options in the table's
// order, so that equal choices print alike. where(key) gives the place that errors start with:
// "suites/x.yaml:7:12: ". Throws UsageError for an unknown option (the known ones are listed), a wrong type,
// a value that is not accepted, or a missing required option.
using Where = std::function<std::string(const std::string& key)>;
Choice resolve(const Choice& choice, const OptionTable& table, const std::string& noun,
               const Where& where = {});

// Returns the choice without options that have their default value, for output to people.
Choice without_defaults(const Choice& choice, const OptionTable& table);

// "fsdp(shard=full, prefetch=1)", "ddp(reduction=topk(ratio=0.1))"; just the name without options.
std::string to_text(const Choice& choice);
// The inverse of to_text; also reads "fsdp:shard=full". Throws UsageError.
Choice choice_from_text(const std::string& text);
// Like choice_from_text, but if the text is no choice, all of it becomes the name: 'GPT-3 (175B)'. Imported
// studies hold such names, and so do studies of later versions of the program. to_text() gives the text back.
Choice choice_or_name(const std::string& text);

}  // namespace shardmark

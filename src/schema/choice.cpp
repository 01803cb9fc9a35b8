// Checks a choice against its table of options (types, ranges, accepted words) and fills in the defaults.
#include "schema/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/value.h"
#include "schema/json.h"

namespace shardmark {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// The option's own range, cut to the range that every number has.
Real range_of(const OptionSpec& spec) {
  return {std::max(spec.minimum, values::kNumber.least), std::min(spec.maximum, values::kNumber.most)};
}

// Leaves out a bound that the option does not set: then only 64 bits limit the integer.
std::string integer_text(const OptionSpec& spec) {
  const bool from = spec.minimum > values::kNumber.least, to = spec.maximum < values::kNumber.most;
  if (from && to) return "an integer " + range_of(spec).range();
  if (from) return fmt::format("an integer, at least {}", spec.minimum);
  return to ? fmt::format("an integer, at most {}", spec.maximum) : "an integer";
}

std::string accepted_text(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::integer:
      return integer_text(spec);
    case OptionType::number:
      return range_of(spec).expected();
    case OptionType::boolean:
      return "true, false";
    case OptionType::text:
      return spec.accepted.empty() ? "a string (quote it if it looks like a number)" : joined(spec.accepted);
    case OptionType::choice:
      return joined(spec.kind().names);
  }
  return "";
}

bool in_range(const OptionValue& value, const OptionSpec& spec) {
  const auto number = value.get<double>();
  const Real range = range_of(spec);
  return number >= range.least && number <= range.most;  // false for a NaN
}

// The value as the user wrote it. JSON would write null for a number that is not finite.
std::string shown(const OptionValue& value) {
  if (value.is<double>() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());
  return dump_line(to_json(value));
}

// Whether the value is the text of a choice with a known name. resolve() checks its options.
bool names_one_of(const ChoiceKind& kind, const OptionValue& value) {
  if (!value.is<std::string>()) return false;
  try {
    const std::string name = choice_from_text(value.get<std::string>()).name;
    return std::count(kind.names.begin(), kind.names.end(), name) > 0;
  } catch (const UsageError&) {
    return false;
  }
}

bool accepts(const OptionSpec& spec, const OptionValue& value) {
  switch (spec.type) {
    case OptionType::integer:
      return value.is<int64_t>() && in_range(value, spec);
    case OptionType::number:
      return value.is_number() && in_range(value, spec);
    case OptionType::boolean:
      return value.is<bool>();
    case OptionType::text:
      return value.is<std::string>() &&
             (spec.accepted.empty() ||
              std::count(spec.accepted.begin(), spec.accepted.end(), value.get<std::string>()) > 0);
    case OptionType::choice:
      return names_one_of(spec.kind(), value);
  }
  return false;
}

std::string resolved_text(const std::string& text, const ChoiceKind& kind, const Where& where) {
  const Choice choice = choice_from_text(text);
  return to_text(resolve(choice, kind.options(choice.name), kind.noun, where));
}

// Gives equal values one form, however they were written, so that `1` and `1.0` make the same point.
OptionValue normal_form(const OptionValue& value, const OptionSpec& spec, const Where& where) {
  if (spec.type == OptionType::number) return value.get<double>();
  if (spec.type != OptionType::choice) return value;
  const Where of_option = [&](const std::string&) { return where ? where(spec.key) : ""; };
  return resolved_text(value.get<std::string>(), spec.kind(), of_option);
}

}  // namespace

Choice resolve(const Choice& choice, const OptionTable& table, const std::string& noun, const Where& where) {
  const auto fail = [&](const std::string& key, const std::string& what) {
    throw UsageError((where ? where(key) : "") + what);
  };
  const std::string owner = noun + " " + choice.name;
  for (const auto& [key, value] : choice.options) {
    if (std::any_of(table.begin(), table.end(),
                    [&, &name = key](const OptionSpec& spec) { return spec.key == name; }))
      continue;
    std::vector<std::string> known;
    for (const OptionSpec& spec : table) known.push_back(spec.key);
    fail(key, fmt::format("unknown option '{}' of {}; accepted: {}", key, owner,
                          known.empty() ? "none" : joined(known)));
  }
  Choice resolved{choice.name};
  for (const OptionSpec& spec : table) {
    const OptionValue* const given = choice.options.find(spec.key);
    const OptionValue& value = given == nullptr ? spec.default_value : *given;
    if (given == nullptr && value.is_nothing())
      fail(spec.key, fmt::format("{} needs option '{}': {}", owner, spec.key, spec.description));
    if (given != nullptr && !accepts(spec, value))
      fail(spec.key, fmt::format("option '{}' of {} is {}; accepted: {}", spec.key, owner, shown(value),
                                 accepted_text(spec)));
    resolved.options[spec.key] = normal_form(value, spec, where);
  }
  return resolved;
}

Choice without_defaults(const Choice& choice, const OptionTable& table) {
  Choice shorter{choice.name};
  for (const auto& [key, value] : choice.options) {
    const auto spec = std::find_if(table.begin(), table.end(),
                                   [&, &name = key](const OptionSpec& known) { return known.key == name; });
    if (spec != table.end() && spec->default_value == value) continue;
    shorter.options[key] = value;
    if (spec == table.end() || spec->type != OptionType::choice || !accepts(*spec, value)) continue;
    const Choice inside = choice_from_text(value.get<std::string>());
    shorter.options[key] = to_text(without_defaults(inside, spec->kind().options(inside.name)));
  }
  return shorter;
}

}  // namespace shardmark

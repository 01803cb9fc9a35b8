// Reads choices: checks names, converts option values to their type, and expands lists of option values.
#include "plan/choice_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

namespace shardmark {
namespace {

constexpr size_t kMostChoices = 10000;  // of one axis; a guard against mistakes

const OptionSpec* find_spec(const OptionTable& table, const std::string& key) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const OptionSpec& spec) { return spec.key == key; });
  return found == table.end() ? nullptr : &*found;
}

// Converts a plain scalar by its form (integer, number, boolean, text). It stays text if the option takes
// text, or if it is quoted.
OptionValue scalar_value(const YamlNode& node, const OptionSpec* spec) {
  if (node.is_map() || node.is_list() || node.is_null())
    node.fail("expected one value, got " + node.describe());
  const std::string text = node.text();
  if (node.is_quoted() || (spec != nullptr && spec->type == OptionType::text)) return text;
  const auto reads = [&](auto& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (int64_t whole = 0; reads(whole)) return whole;
  if (double number = 0; reads(number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

// The values given for one option: the items of a list, or one value.
std::vector<OptionValue> option_values(const YamlNode& node, const OptionSpec* spec) {
  std::vector<OptionValue> values;
  if (spec != nullptr && spec->type == OptionType::choice) {
    for (const auto& choice : read_choices(node, spec->kind())) values.emplace_back(to_text(choice));
    return values;
  }
  for (const auto& item : node.items()) values.push_back(scalar_value(item, spec));
  return values;
}

void check_name(const std::string& name, const std::string& place, const ChoiceKind& kind) {
  if (std::find(kind.names.begin(), kind.names.end(), name) == kind.names.end())
    throw UsageError(place + "unknown " + kind.noun + " " + quoted_line(name) + "; " +
                     accepted_words(name, kind.names));
}

// A name, or a name with its options as flags have them: "fsdp(prefetch=2)".
Choice choice_of_text(const YamlNode& item) {
  const std::string text = item.text();
  if (text.find_first_of("(:") == std::string::npos) return {text};
  try {
    return choice_from_text(text);
  } catch (const UsageError& error) {
    item.fail(error.what());
  }
}

// visit_choices() calls visit(choice, where) for every choice that one item of the axis stands for. An item
// is a name, a name with options as flags have them, or a map of one name to its options: {fsdp: {prefetch:
// [1, 2]}}. Only in a map may an option have a list of values; the item then stands for the product of all
// its lists. where(key) gives the place of an option in the file, or that of the name if the item does not
// write the option.
using Visit = std::function<void(const Choice&, const Where&)>;

void visit_choices(const YamlNode& item, const ChoiceKind& kind, const Visit& visit) {
  if (!item.is_map()) {
    if (item.is_null()) item.fail("no value; " + accepted_words("", kind.names));
    const Choice choice = choice_of_text(item);
    check_name(choice.name, item.place(), kind);
    visit(choice, [&](const std::string&) { return item.place(); });
    return;
  }
  const auto entries = item.entries();
  if (entries.size() != 1)
    item.fail(fmt::format(
        "expected one name with its options, {{name: {{option: value}}}}, got {} names; several are a list",
        entries.size()));
  const YamlNode& entry = entries.front();
  check_name(entry.key(), entry.key_place(), kind);
  const OptionTable& table = kind.options(entry.key());
  const auto options = entry.is_null() ? std::vector<YamlNode>{} : entry.entries();

  std::vector<Choice> choices = {{entry.key()}};
  for (const auto& option : options) {
    const auto values = option_values(option, find_spec(table, option.key()));
    if (choices.size() * values.size() > kMostChoices)
      option.fail(fmt::format("the lists make more than {} choices", kMostChoices));
    std::vector<Choice> product;
    for (const auto& choice : choices)
      for (const auto& value : values) {
        product.push_back(choice);
        product.back().options[option.key()] = value;
      }
    choices = std::move(product);
  }
  const Where where = [&](const std::string& key) {
    for (const auto& option : options)
      if (option.key() == key) return option.place();
    return entry.key_place();
  };
  for (const auto& choice : choices) visit(choice, where);
}

// Fills in the defaults, and then lets the kind check which values go together.
Choice resolve_and_check(const Choice& choice, const ChoiceKind& kind, const Where& where) {
  Choice resolved = resolve(choice, kind.options(choice.name), kind.noun, where);
  try {
    kind.check(resolved);
  } catch (const UsageError& error) {
    throw UsageError(where("") + error.what());
  }
  return resolved;
}

}  // namespace

std::vector<Choice> read_choices(const YamlNode& axis, const ChoiceKind& kind) {
  std::vector<Choice> choices;
  for (const auto& item : axis.items())
    visit_choices(item, kind, [&](const Choice& choice, const Where& where) {
      choices.push_back(resolve_and_check(choice, kind, where));
    });
  return choices;
}

std::vector<Choice> read_partial_choices(const YamlNode& axis, const ChoiceKind& kind) {
  std::vector<Choice> choices;
  for (const auto& item : axis.items())
    visit_choices(item, kind, [&](const Choice& choice, const Where& where) {
      OptionTable table = kind.options(choice.name);
      std::erase_if(table, [&](const OptionSpec& spec) {  // a rule may leave out required options
        return spec.default_value.is_nothing() && !choice.options.contains(spec.key);
      });
      const Choice resolved = resolve(choice, table, kind.noun, where);
      Choice part{choice.name};
      for (const auto& [key, value] : choice.options) {
        const OptionValue* const normal = resolved.options.find(key);
        part.options[key] = normal == nullptr ? OptionValue() : *normal;
      }
      choices.push_back(std::move(part));
    });
  return choices;
}

std::vector<Choice> choices_from_flag(const std::vector<std::string>& texts, const std::string& flag,
                                      const ChoiceKind& kind) {
  const Where where = [&](const std::string&) { return flag + ": "; };
  std::vector<Choice> choices;
  for (const auto& text : texts) {
    Choice choice;
    try {
      choice = choice_from_text(text);
    } catch (const UsageError& error) {
      throw UsageError(flag + ": " + error.what());
    }
    check_name(choice.name, flag + ": ", kind);
    choices.push_back(resolve_and_check(choice, kind, where));
  }
  return choices;
}

Choice choice_from_flag(const std::string& text, const std::string& flag, const ChoiceKind& kind) {
  return choices_from_flag({text}, flag, kind).front();
}

}  // namespace shardmark

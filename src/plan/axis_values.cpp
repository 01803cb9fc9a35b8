// Parses the values of axes: one parser for each kind of value that an axis accepts.
#include "plan/axis_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/choice_axis.h"
#include "schema/settings.h"
#include "specs/collectives.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr size_t kMostSettings = 1000;  // combinations; a guard against mistakes

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto& row : specs::precision_specs()) names.push_back(row.name);
  return names;
}

// Converts a number from a suite or a flag to the type of the axis's member. The ranges are of whole
// numbers, numbers or sizes, while the member is a double or an integer.
template <class Number>
AxisValue number_value(const AxisRow& axis, Number number) {
  if (std::holds_alternative<double TrainingPoint::*>(axis.member)) return static_cast<double>(number);
  return static_cast<int64_t>(number);
}

const NamedNumber* find_name(const AxisRow& axis, const std::string& word) {
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.word == word) return &named;
  return nullptr;
}

template <class Kind>
AxisValue read_number(const AxisRow& axis, const Kind& kind, const YamlNode& node) {
  // A word such as `largest` stands for a number. An axis with such words may have an error text of its own
  // (axis.expected), which also names them; {} in it stands for the usual text.
  if (!node.is_map() && !node.is_list() && !node.is_null())
    if (const NamedNumber* named = find_name(axis, node.text())) return number_value(axis, named->number);
  if (axis.expected == nullptr) return node.value(kind);
  try {
    return node.value(kind);
  } catch (const UsageError&) {
    node.fail("expected " + fmt::format(fmt::runtime(axis.expected), kind.expected()) + ", got " +
              node.describe());
  }
}

// Parses one combination of settings, in any order: "NCCL_ALGO=Ring threads=2". Empty text sets nothing.
AxisValue parse_settings(const std::string& text) {
  const Settings settings = settings_from_text(text);
  for (const auto& [name, value] : settings)
    if (const std::string wrong = wrong_setting(name, value); !wrong.empty())
      throw UsageError(quoted_line(name) + ": " + wrong);
  return to_text(settings);
}

// Reads settings as a map, {A: [x, y], B: [~, z]}, which gives every combination (~ leaves the variable
// unset), or one combination as text.
std::vector<AxisValue> read_settings(const YamlNode& node) {
  if (!node.is_map()) try {
      return {parse_settings(node.is_null() ? "" : node.text())};
    } catch (const UsageError& error) {
      node.fail(error.what());
    }
  std::vector<Settings> product = {{}};
  for (const YamlNode& entry : node.entries()) {
    std::vector<Settings> longer;
    for (const Settings& settings : product)
      for (const YamlNode& item : entry.items()) {
        longer.push_back(settings);
        if (item.is_null()) continue;
        if (const std::string wrong = wrong_setting(entry.key(), item.text()); !wrong.empty())
          item.fail(wrong);
        longer.back()[entry.key()] = item.text();
      }
    if (longer.size() > kMostSettings)
      entry.fail(fmt::format("the lists make more than {} combinations, and each is a start of its own",
                             kMostSettings));
    product = std::move(longer);
  }
  std::vector<AxisValue> values;
  for (const Settings& settings : product) values.emplace_back(to_text(settings));
  return values;
}

// Reads one value. What the row of the axis accepts decides which parser is used.
AxisValue read_value(const AxisRow& axis, const YamlNode& node) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> AxisValue {
        if constexpr (std::is_same_v<Kind, Words>)
          return node.value(Word{words_of(axis.key)});
        else if constexpr (std::is_same_v<Kind, TrueOrFalse>)
          return node.boolean();
        else if constexpr (std::is_same_v<Kind, Choices>)
          return as_value(axis, read_choices(node, kind_of(axis.key)).front());
        else if constexpr (std::is_same_v<Kind, Variables>)
          return read_settings(node).front();
        else
          return read_number(axis, kind, node);
      },
      axis.accepted);
}

// Parses a value of a flag. A flag also accepts 0 where a suite may write `none`.
AxisValue parse_value(const AxisRow& axis, const std::string& text) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> AxisValue {
        if constexpr (std::is_same_v<Kind, Words>) {
          return Word{words_of(axis.key)}.parse(text);
        } else if constexpr (std::is_same_v<Kind, TrueOrFalse>) {
          return Word{{"true", "false"}}.parse(text) == "true";
        } else if constexpr (std::is_same_v<Kind, Choices>) {
          return as_value(axis, choice_from_flag(text, axis.key, kind_of(axis.key)));
        } else if constexpr (std::is_same_v<Kind, Variables>) {
          return parse_settings(text);
        } else {
          const NamedNumber* const named = find_name(axis, text == "0" ? "none" : text);
          return named == nullptr ? number_value(axis, kind.parse(text)) : number_value(axis, named->number);
        }
      },
      axis.accepted);
}

// Appends the sizes of a range: from `from` to at most `to`, each `factor` times the one before.
void append_range(const YamlNode& node, const Bytes& kind, std::vector<AxisValue>& sizes) {
  const YamlMap map(node, "a range of " + node.key(), {"from", "to", "factor"});
  const int64_t from = map.need("from").value(kind), to = map.need("to").value(kind);
  const Whole factors{2, kind.most};
  const int64_t factor = map.find("factor") != nullptr ? map.find("factor")->value(factors) : 2;
  if (from > to) node.fail("from " + std::to_string(from) + " is above to " + std::to_string(to));
  for (int64_t bytes = from; bytes <= to; bytes *= factor) {
    sizes.emplace_back(bytes);
    if (bytes > to / factor) break;  // the next one would be above `to` or overflow
  }
}

// Reads words, or `all` for every word. `all` must stand alone: beside it, a word would be listed twice.
std::vector<AxisValue> read_words_or_all(const AxisRow& axis, const YamlNode& node) {
  const std::vector<std::string>& known = words_of(axis.key);
  std::vector<std::string> accepted = known;
  accepted.push_back("all");
  std::vector<AxisValue> words;
  for (const auto& item : node.items()) words.emplace_back(item.value(Word{accepted}));
  if (std::find(words.begin(), words.end(), AxisValue(std::string("all"))) == words.end()) return words;
  if (words.size() > 1) node.fail(fmt::format("'all' stands for every {}; write it alone", axis.key));
  const std::vector<std::string> collectives = specs::collective_names();  // dispatch and combine are none
  const auto& all = std::string_view(axis.key) == "operation" ? collectives : known;
  return {all.begin(), all.end()};
}

}  // namespace

const std::vector<std::string>& words_of(const std::string& key) {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"precision", precision_names()},        {"reduce_dtype", specs::reduce_dtype_names()},
      {"stages", {"flops", "blocks"}},         {"rank_order", {"dp-pp", "pp-dp"}},
      {"kernels", {"torch", "fused"}},         {"gathers", {"shared", "own"}},
      {"operation", specs::operation_names()}, {"dtype", specs::dtype_names()},
      {"reduction", specs::reduction_names()}};
  return words.at(key);
}

AxisValue as_value(const AxisRow& axis, const Choice& choice) {
  if (std::holds_alternative<Choice TrainingPoint::*>(axis.member)) return choice;
  return to_text(choice);
}

// An item of a list is usually one value. A choice may be several, if its options have lists, and so may
// settings, if their variables have lists.
std::vector<AxisValue> read_values(const AxisRow& axis, const YamlNode& node) {
  std::vector<AxisValue> values;
  if (std::holds_alternative<Choices>(axis.accepted))
    for (const Choice& choice : read_choices(node, kind_of(axis.key)))
      values.push_back(as_value(axis, choice));
  else if (std::holds_alternative<Variables>(axis.accepted))
    for (const auto& item : node.items())
      for (AxisValue& value : read_settings(item)) values.push_back(std::move(value));
  else
    for (const auto& item : node.items()) values.push_back(read_value(axis, item));
  return values;
}

std::vector<AxisValue> read_block_values(const AxisRow& axis, const YamlNode& node) {
  if (const auto* words = std::get_if<Words>(&axis.accepted); words != nullptr && words->or_all)
    return read_words_or_all(axis, node);
  const auto* sizes = std::get_if<Bytes>(&axis.accepted);
  if (sizes == nullptr) return read_values(axis, node);
  std::vector<AxisValue> values;
  for (const auto& item : node.items())
    if (item.is_map())
      append_range(item, *sizes, values);
    else
      values.push_back(read_value(axis, item));
  return values;
}

std::vector<AxisValue> values_from_flag(const AxisRow& axis, const std::vector<std::string>& texts,
                                        const std::string& flag) {
  std::vector<AxisValue> values;
  if (std::holds_alternative<Choices>(axis.accepted)) {
    for (const Choice& choice : choices_from_flag(texts, flag, kind_of(axis.key)))
      values.push_back(as_value(axis, choice));
    return values;
  }
  for (const std::string& text : texts) try {
      values.push_back(parse_value(axis, text));
    } catch (const UsageError& error) {
      throw UsageError(flag + ": " + error.what());
    }
  return values;
}

}  // namespace shardmark

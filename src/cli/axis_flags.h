// Flags that take values of an axis of a suite (schema/axes.h).
#pragma once

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/values.h"
#include "plan/axis_values.h"

namespace shardmark {

// 0 where the axis has a word for it: the flag takes the number.
template <class Kind>
Kind with_zero(const AxisRow& axis, Kind kind) {
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.number == 0) kind.least = 0;
  if constexpr (requires { kind.is_open; }) kind.is_open = kind.is_open && axis.named[0].word == nullptr;
  return kind;
}

// A word of the axis in the place of a number: full of checkpointing. A suite takes both; so do flags.
template <class Kind>
void add_words(CLI::Option* option, const AxisRow& axis, const Kind& kind) {
  std::vector<std::string> words;
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.number >= static_cast<int64_t>(kind.least))
      words.emplace_back(named.word);
  if (words.empty()) return;
  offer(option, {.words = [words] { return words; }});
  option->transform(CLI::Validator(  // the last transformation comes first
      [&axis, words](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) == words.end()) {
          const bool is_number = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
          return is_number || axis.expected == nullptr
                     ? ""
                     : fmt::format("expected {}, got {}", axis.expected, quoted_line(text));
        }
        for (const NamedNumber& named : axis.named)
          if (named.word != nullptr && text == named.word) text = fmt::format("{}", named.number);
        return "";
      },
      ""));
}

// Target: a text or a list of texts, or the axis's member where that is no choice.
template <class Target>
CLI::Option* add_axis(CLI::App& app, const std::string& names, Target& target, const AxisRow& axis) {
  const std::string help = axis.help == nullptr ? axis.description : axis.help;
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (std::is_same_v<Kind, Choices>)
          return offer(app.add_option(names, target, help),
                       {.words = [&axis] { return kind_of(axis.key).names; }});
        else if constexpr (std::is_same_v<Kind, Variables>)
          return app.add_option(names, target, help);
        else if constexpr (std::is_same_v<Kind, Words>)
          return add_value(app, names, target, Word{words_of(axis.key)}, help);
        else if constexpr (std::is_same_v<Kind, TrueOrFalse>)
          return add_value(app, names, target, Word{{"true", "false"}}, help);
        else {
          CLI::Option* const option = add_value(app, names, target, with_zero(axis, kind), help);
          add_words(option, axis, with_zero(axis, kind));
          return option;
        }
      },
      axis.accepted);
}

// "--reduce-dtype" of reduce_dtype, where the row says nothing else.
inline std::string flag_of(const AxisRow& axis) {
  if (axis.train_flag != nullptr) return axis.train_flag;
  std::string flag = std::string("--") + axis.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// A flag for one value, which goes to the point; a choice goes to `choices` as text, by its key.
inline CLI::Option* add_axis_of(CLI::App& app, const AxisRow& axis, Point& point,
                                std::map<std::string, std::string>& choices) {
  const auto add = [&]<class T>(T& member) {
    if constexpr (!std::is_same_v<T, Choice>) {
      return add_axis(app, flag_of(axis), member, axis);
    } else {
      const char* const text = axis.default_choice == nullptr ? "" : axis.default_choice;
      return add_axis(app, flag_of(axis), choices.try_emplace(axis.key, text).first->second, axis);
    }
  };
  return visit_member(axis, point, add)->capture_default_str();
}

}  // namespace shardmark

// Flags that take values of a suite's axis (schema/axes.h).
#pragma once

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/values.h"
#include "plan/axis_values.h"

namespace shardmark {

// Extends the range to 0 if the axis has a word for 0: the flag accepts the number, too.
template <class Kind>
Kind with_zero(const AxisRow& axis, Kind kind) {
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.number == 0) kind.least = 0;
  if constexpr (requires { kind.is_open; }) kind.is_open = kind.is_open && axis.named[0].word == nullptr;
  return kind;
}

// Accepts the words that an axis has for numbers, such as `full` for checkpointing. Suites and flags accept
// both.
template <class Kind>
void add_words(CLI::Option* option, const AxisRow& axis, const Kind& kind) {
  std::vector<std::string> words;
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.number >= static_cast<int64_t>(kind.least))
      words.emplace_back(named.word);
  if (words.empty()) return;
  offer(option, {.words = [words] { return words; }});
  option->transform(CLI::Validator(  // the transformation added last is applied first
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

// Adds a flag for an axis. Target is a text, a list of texts, or the axis's member if that is not a choice.
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

// The flag that gives the axis: its own, or --set.
inline std::string flag_of(const AxisRow& axis) { return axis.flag == nullptr ? "--set" : axis.flag; }

// Adds a flag for one value, which is stored in the point. A choice is stored as text in `choices`, by its
// key.
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

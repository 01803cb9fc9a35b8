// Flags that take a kind of value (base/value.h), parsed through CLI11.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "base/value.h"
#include "cli/candidates.h"

namespace shardmark {

// Restricts an option to values of this kind. The help shows its range, and completion offers its words.
template <class Kind>
CLI::Option* takes(CLI::Option* option, const Kind& kind) {
  const auto read = [kind](std::string& text) -> std::string {
    try {
      text = fmt::format("{}", kind.parse(text));
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  if constexpr (std::is_same_v<Kind, Word>)
    offer(option, {.words = [words = kind.accepted] { return words; }});
  return option->transform(CLI::Validator(read, kind.range()))->type_name(Kind::kName);
}

template <class Kind, class Target>
CLI::Option* add_value(CLI::App& app, const std::string& names, Target& target, const Kind& kind,
                       const std::string& description) {
  return takes(app.add_option(names, target, description), kind);
}

// Refuses empty values of all flags and arguments: they are mistakes, such as an unset variable in a script,
// and have no meaning anywhere. To be called after all options have been added.
inline void refuse_empty_values(CLI::App& app) {
  const auto refuse = [](const std::string& text) {
    return text.empty() || text == "{}" ? "an empty value; give one, or leave it out" : "";
  };
  for (CLI::Option* option : app.get_options())
    option->transform(CLI::Validator([refuse](std::string& text) { return std::string(refuse(text)); }, ""));
}

}  // namespace shardmark

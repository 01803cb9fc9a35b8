// The arguments of a command that passes flags on to `run`: `launch suites/x.yaml -n 4 -- --steps 20`. And of
// `launch` with another command for the ranks, whose arguments need no `--`: `launch -n 4 collective
// all_reduce`.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/candidates.h"
#include "cli/whole_program.h"

namespace shardmark {

inline bool is_command_of_ranks(std::string_view word) {
  return word != "run" && whole_command(word) != nullptr;  // a suite is what launch starts `run` for
}

// The command line of `launch` with the `--` that such a command makes unnecessary.
inline std::vector<char*> with_dashes(std::vector<char*> words, const CLI::App& launch) {
  static char dashes[] = "--";
  for (size_t i = 2; i < words.size() && std::string_view(words[i]) != dashes; ++i) {
    const CLI::Option* const before = launch.get_option_no_throw(words[i - 1]);
    const bool is_value = before != nullptr && before->get_items_expected_max() > 0;
    if (!is_command_of_ranks(words[i]) || is_value) continue;
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, dashes);
    break;
  }
  return words;
}

class HandedArguments {
 public:
  void add_to(CLI::App& app, const std::string& name, const std::string& description) {
    offer(app.add_option(name, all_, description)->required(), {Candidates::Kind::suites});
    // This option is never filled, because the first takes all arguments. But CLI11 parses what follows `--`
    // only if it is declared.
    offer(app.add_option("flags", none_, "after -- flags of `shardmark run`"), {Candidates::Kind::run_flags});
  }
  const std::vector<std::string>& all() const { return all_; }
  std::vector<std::string> own() const { return {all_.begin(), first_flag()}; }
  std::vector<std::string> flags() const { return {first_flag(), all_.end()}; }

 private:
  // An argument that begins with '-' can only have come after `--`.
  std::vector<std::string>::const_iterator first_flag() const {
    return std::find_if(all_.begin(), all_.end(),
                        [](const std::string& argument) { return argument.starts_with('-'); });
  }
  std::vector<std::string> all_, none_;
};

}  // namespace shardmark

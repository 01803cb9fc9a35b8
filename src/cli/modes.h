// A flag that changes what a command does, so that most of its other flags have no meaning and are refused.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace shardmark {

// Allows only these options and the help together with `mode`. To be called after all options have been
// added.
inline void takes_only(CLI::App& app, CLI::Option* mode, const std::vector<std::string>& options) {
  for (CLI::Option* option : app.get_options()) {
    const bool is_taken = option == mode || option == app.get_help_ptr() ||
                          option == app.get_help_all_ptr() ||
                          std::any_of(options.begin(), options.end(),
                                      [&](const std::string& name) { return option->check_name(name); });
    if (!is_taken) mode->excludes(option);
  }
}

}  // namespace shardmark

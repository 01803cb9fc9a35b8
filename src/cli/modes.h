// A flag that makes another thing of a command, in which most of its flags have no meaning: they are refused.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace shardmark {

// Beside `mode` only these options are taken, and the help. Call it when all options are there.
inline void takes_only(CLI::App& app, CLI::Option* mode, const std::vector<std::string>& options) {
  for (CLI::Option* option : app.get_options()) {
    const bool is_taken = option == mode || option == app.get_help_ptr() ||
                          std::any_of(options.begin(), options.end(),
                                      [&](const std::string& name) { return option->check_name(name); });
    if (!is_taken) mode->excludes(option);
  }
}

}  // namespace shardmark

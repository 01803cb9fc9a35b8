// The arguments of a command that passes flags on to `run`: `launch suites/x.yaml -n 4 -- --steps 20`.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "cli/candidates.h"

namespace shardmark {

class HandedArguments {
 public:
  void add_to(CLI::App& app, const std::string& name, const std::string& description) {
    offer(app.add_option(name, all_, description)->required(), {Candidates::Kind::suites});
    // This option is never filled, because the first takes all arguments. But CLI11 parses what follows `--`
    // only if it is declared.
    offer(app.add_option("flags", none_, "after -- flags of `shardmark run`"), {Candidates::Kind::run_flags});
  }
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

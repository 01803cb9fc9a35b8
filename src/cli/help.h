// The help of the program and of its commands. --help fits on one screen: what the command is for, three
// examples, and the flags that most people need; --help-all has every flag, with its range and default.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardmark {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace shardmark

// shardmark: finds the command, runs it, and turns every error into one line and an exit status.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"

namespace shardmark {
namespace {

int run_command(int argc, char** argv) {
  CLI::App app{"shardmark tells how fast a cluster trains"};
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of every command");
  std::map<CLI::App*, std::function<int()>> commands;
  for (const auto& [name, entry] : Registry<CommandEntry>::instance().entries()) {
    CLI::App* command = app.add_subcommand(name, entry.description);
    commands[command] = entry.define(*command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const auto named = app.get_subcommands();
    log_line(fmt::format("{} (see shardmark {}--help)", error.what(),
                         named.empty() ? "" : named.front()->get_name() + " "));
    return kUsage;
  }
  return commands.at(app.get_subcommands().front())();
}

}  // namespace
}  // namespace shardmark

int main(int argc, char** argv) {
  try {
    return shardmark::run_command(argc, argv);
  } catch (const shardmark::Silent& told) {
    return told.status;
  } catch (const shardmark::UsageError& error) {
    shardmark::log_line(error.what());
    return shardmark::kUsage;
  } catch (const std::exception& error) {
    shardmark::log_line(std::string("failed: ") + error.what());
    return shardmark::kSystem;
  }
}

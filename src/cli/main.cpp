// The program shardmark: finds the command, runs it, and turns every error into one line and an exit status.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/after_dashes.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/flag_effects.h"
#include "cli/help.h"
#include "cli/old_spellings.h"
#include "cli/run_flags.h"
#include "cli/values.h"
#include "cli/version.h"
#include "cli/whole_program.h"

namespace shardmark {
namespace {

// Whether this is rank 0, from the launcher's environment variables, before MPI is initialized. All ranks
// find a mistake in the flags, but only rank 0 prints it.
bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::string(rank) == "0";
  return true;
}

constexpr std::chrono::seconds kGrace{5};

int refuse(const std::string& message) {
  if (is_first_rank())
    log_line(printable(message, ""));
  else
    std::this_thread::sleep_for(kGrace);  // the launcher ends all ranks as soon as one ends
  return kUsage;
}

std::string sibling() { return own_program() + "-torch"; }

// "did you mean '--strategy'? ", where a flag of the command is near.
std::string nearest_flag(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("--")) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string text = accepted_words(word.substr(0, word.find('=')), names);
  return text.starts_with("did you mean") ? text.substr(0, text.find('?') + 2) : "";
}

// The message about arguments that a command does not know. CLI11 lists them from the last to the first.
std::string message_of_unknown(const CLI::App& command, const std::vector<std::string>& words) {
  const std::string name = command.get_name();
  const std::vector<std::string> unknown = command.remaining();
  if (name == "launch" || name == "submit")
    if (std::string message = belonging_to_run(words, unknown); !message.empty()) return message;
  if (std::string message = instead_of_flag(name, unknown, words); !message.empty()) return message;
  return fmt::format("The following argument{} not expected: {} ({}see shardmark {} --help)",
                     unknown.size() == 1 ? " was" : "s were", fmt::join(unknown, " "),
                     nearest_flag(command, unknown.front()), name);
}

// The message of CLI11, except for a first word that is no command or flag: CLI11 does not name it.
std::string message_of(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  const auto named = app.get_subcommands();
  if (!named.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
      !named.front()->remaining().empty())
    return message_of_unknown(*named.front(), {argv + 1, argv + argc});
  if (!named.empty()) {
    // The value of a flag that is unknown may be what the error is about: CLI11 takes it for an argument.
    if (std::string message =
            instead_of_flag(named.front()->get_name(), named.front()->remaining(), {argv + 1, argv + argc});
        !message.empty())
      return message;
    std::string text = error.what();  // "-n: At Most 1 required but received 2"
    if (const size_t end = text.find(": At Most 1 required but received "); end != std::string::npos)
      text = text.substr(0, end) + " takes one value: give it once";
    return fmt::format("{} (see shardmark {} --help)", text, named.front()->get_name());
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return fmt::format("{} (see shardmark --help)", error.what());
  if (whole_command(words.front()) != nullptr)
    return fmt::format(
        "{} needs shardmark-torch beside this program, and it is not at {}; copy both, or build it: make "
        "build",
        words.front(), sibling());
  return fmt::format("unknown {} {}; {}", words.front().starts_with('-') ? "flag" : "command",
                     quoted_line(words.front()), accepted_words(words.front(), commands));
}

// If the program was started without a standard descriptor, the first file that it opens (such as a study)
// would get that number, and printed text would go into it. So missing descriptors are opened on /dev/null,
// read only.
void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

// Replaces this process by shardmark-torch if the command line needs it: for its commands, for output about
// all commands, and for the versions of all libraries.
void become_whole_program(int argc, char** argv) {
  const std::string whole = whole_program();
  if (argc < 2 || whole.empty()) return;
  const std::string word = argv[1];
  const bool is_of_all =
      word == "--version" || word == "--help-all" || word.substr(0, word.find('=')) == "--completion";
  if (!is_of_all && whole_command(word) == nullptr) return;
  ::execv(whole.c_str(), argv);
  throw SystemError(whole + " cannot be started: " + std::strerror(errno));
}

int run_command(int argc, char** argv) {
  std::string help = "--help";
  char* help_of_command[] = {argv[0], argc == 3 ? argv[2] : nullptr, help.data(), nullptr};
  if (argc == 3 && std::string_view(argv[1]) == "help") argv = help_of_command;  // shardmark help run
  // Before anything is parsed, because the next word may be a command that there is, as in `reference list`.
  if (const std::string message = argc < 2 ? "" : instead_of_command(argv[1]); !message.empty())
    return refuse(message);
  become_whole_program(argc, argv);
  CLI::App app{"shardmark measures how fast a cluster trains", "shardmark"};
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_all_flag("--help-all", "help for every command");
  app.set_version_flag("--version", version_text, "versions of the program and of its libraries");
  takes(app.add_option_function<std::string>(
            "--completion",
            [&app](const std::string& shell) {
              print_completion(app, shell);
              throw CLI::Success();
            },
            "print a script for this shell that completes command lines: source <(shardmark --completion "
            "bash)"),
        Word{shells_with_completion()});
  // The help lists the commands of shardmark-torch, too, although this program does not have them.
  std::map<std::string, const CommandEntry*> entries;  // sorted by name
  if (!whole_program().empty())
    for (const WholeCommand& command : kWholeCommands) entries[command.name] = nullptr;
  for (const auto& [name, entry] : Registry<CommandEntry>::instance().entries()) entries[name] = &entry;
  std::map<CLI::App*, std::function<int()>> commands;
  for (const auto& [name, entry] : entries) {
    CLI::App* command =
        app.add_subcommand(name, entry == nullptr ? whole_command(name)->description : entry->description);
    command->set_help_flag("-h,--help", "three examples, and the flags that most people need");
    command->set_help_all_flag("--help-all", "every flag");
    if (entry == nullptr) continue;
    commands[command] = entry->define(*command);
    refuse_empty_values(*command);
  }
  if (argc == 1 || (argc == 2 && std::string_view(argv[1]) == "help")) {
    print(app.help());
    return kDone;
  }
  try {
    std::vector<char*> words = {argv, argv + argc};
    if (std::string_view(argv[1]) == "launch") words = with_dashes(words, *app.get_subcommand("launch"));
    app.parse(static_cast<int>(words.size()), words.data());
    refuse_idle_flags(app.get_subcommands().front()->get_name(), *app.get_subcommands().front());
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int status = app.exit(help, text, text);
    print(text.str());
    return status;
  } catch (const CLI::ParseError& error) {
    return refuse(message_of(error, app, argc, argv));
  } catch (const UsageError& error) {
    return refuse(error.what());
  }
  return commands.at(app.get_subcommands().front())();
}

// Runs the command and turns every error into one line.
int exit_status(int argc, char** argv) {
  try {
    fill_standard_descriptors();
    std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit then fails with an error
    const int status = run_command(argc, argv);
    print("");  // fails if earlier output could not be written
    return status;
  } catch (const AlreadyReported& error) {
    return error.status;
  } catch (const UsageError& error) {
    log_line(printable(error.what(), ""));
    return kUsage;
  } catch (const std::exception& error) {
    log_line(std::string("failed: ") + error.what());
    return kSystem;
  }
}

}  // namespace

std::string whole_program() {
  const std::string path = sibling();
  return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

bool has_command(const std::string& name) {
  return Registry<CommandEntry>::instance().contains(name) ||
         (whole_command(name) != nullptr && !whole_program().empty());
}

}  // namespace shardmark

int main(int argc, char** argv) {
  const int status = shardmark::exit_status(argc, argv);
  std::fflush(nullptr);
  // quick_exit skips the static destructors of LibTorch and CUDA, which take 0.2 s and have nothing to write.
  std::quick_exit(status);
}

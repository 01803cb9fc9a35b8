#include "cli/command_line.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace shardmark {
namespace {

std::vector<std::string> words_of_process(const std::string& process) {
  std::ifstream file("/proc/" + process + "/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

std::string own_program() {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path by_kernel = fs::read_symlink("/proc/self/exe", none);
  if (!none) return by_kernel.string();
  // Without /proc, the name under which the program was started.
  const auto* const named = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return named == nullptr ? "" : fs::weakly_canonical(named, none).string();
}

std::vector<std::string> command_words() { return words_of_process("self"); }

std::string command_line() { return shell_line(command_words()); }

std::vector<std::string> mpirun_words() {
  std::vector<std::string> words = words_of_process(fmt::format("{}", ::getppid()));
  if (words.empty()) return {};
  const std::string name = words.front().substr(words.front().rfind('/') + 1);
  for (const char* const launcher : {"mpirun", "mpiexec", "orterun", "prterun"})
    if (name == launcher) return words;
  return {};
}

}  // namespace shardmark

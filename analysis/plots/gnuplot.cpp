// Scripts to files, and gnuplot over them.
#include "analysis/plots/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <ostream>

#include "base/error.h"
#include "schema/file.h"

extern char** environ;

namespace shardmark {
namespace {

// Returns its exit status; 127 where there is none to run.
int run_gnuplot(const std::vector<std::string>& scripts, const std::filesystem::path& directory) {
  std::vector<std::string> words = {"gnuplot"};
  words.insert(words.end(), scripts.begin(), scripts.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw SystemError("cannot wait for gnuplot");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

std::vector<std::filesystem::path> write_plots(const std::vector<Plot>& plots,
                                               const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::vector<std::filesystem::path> files;
  std::vector<std::string> scripts;
  for (const Plot& plot : plots) {
    scripts.push_back(plot.key + ".gp");
    write_whole(directory / scripts.back(), "name a directory that can: --plots DIR",
                [&](std::ostream& out) { out << gnuplot_script(plot); });
    for (const char* ending : {".svg", ".png", ".pdf", ".gp"})
      files.push_back(directory / (plot.key + ending));
  }
  if (plots.empty()) return files;
  const int status = run_gnuplot(scripts, directory);
  if (status == 127)
    throw UsageError(
        "--plots: there is no gnuplot here; install it (Debian, Ubuntu: apt-get install "
        "gnuplot-nox), or take the plots of the page: --html FILE; the scripts are in " +
        directory.string());
  if (status != 0)
    throw SystemError("gnuplot ended with status " + std::to_string(status) +
                      "; its message is above, the scripts are in " + directory.string());
  return files;
}

}  // namespace shardmark

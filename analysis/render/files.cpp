#include "analysis/render/files.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <ostream>

#include "analysis/render/svg.h"
#include "base/error.h"
#include "schema/beside.h"

extern char** environ;

namespace shardmark {
namespace {

constexpr const char* kConverter = "rsvg-convert";
constexpr const char* kPixelsPerUnit = "3";  // of a PNG: 1,260 pixels wide

// Returns the command's exit status; 127 where there is none to run, 124 where `timeout` ended it.
int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environ) != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw SystemError("cannot wait for " + words[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// False: there is no converter.
bool convert(const std::filesystem::path& file, const std::string& format) {
  const std::filesystem::path svg = std::filesystem::absolute(file);  // which begins as no flag does
  std::filesystem::path to = svg;
  to.replace_extension(format);
  FileBeside unfinished(to.string());  // no half a file under the final name
  if (!unfinished) fail_to_write(unfinished.name());
  const int status =
      run({"timeout", "60", kConverter, "--format", format, "--zoom", format == "png" ? kPixelsPerUnit : "1",
           "--output", unfinished.name(), svg.string()});
  if (status != 0 && status != 127)
    throw SystemError(
        std::string(kConverter) +
        (status == 124 ? " did not end in 60 s" : " ended with status " + std::to_string(status)) + " at " +
        svg.string() + (status == 124 ? "" : "; its message is above"));
  if (status == 0 && !unfinished.take_place()) fail_to_write(to.string());
  return status == 0;
}

}  // namespace

std::vector<std::string> plot_file_names(const Plot& plot) {
  return {plot.key + ".svg", plot.key + ".png", plot.key + ".pdf"};
}

PlotFiles write_plots(const std::vector<Plot>& plots, const std::filesystem::path& directory) {
  make_directory(directory, "--plots");
  PlotFiles files;
  for (const Plot& plot : plots) {
    const std::filesystem::path svg = directory / (plot.key + ".svg");
    write_whole(svg, "name a writable directory: --plots DIR",
                [&](std::ostream& out) { out << to_svg_document(plot); });
    files.paths.push_back(svg);
    for (const char* format : {"png", "pdf"}) {
      files.is_converted = files.is_converted && convert(svg, format);
      if (files.is_converted) files.paths.push_back(directory / (plot.key + "." + format));
    }
  }
  return files;
}

}  // namespace shardmark

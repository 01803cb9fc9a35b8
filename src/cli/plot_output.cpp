// Writes plots as files.
#include "cli/plot_output.h"

#include "analysis/render/files.h"
#include "base/error.h"
#include "base/log.h"

namespace shardmark {

CLI::Option* add_plots_flag(CLI::App& command, std::string& directory) {
  auto* plots = command.add_option(
      "--plots", directory, "write each plot as DIR/<key>.svg, .png and .pdf (the last two by rsvg-convert)");
  for (const char* flag : kTableFlags) plots->excludes(command.get_option(flag));
  return plots;
}

void write_plot_files(const Plots& plots, const std::string& directory, const TableOutput& output,
                      const std::string& nothing) {
  if (plots.empty()) throw UsageError("--plots: nothing to plot: " + nothing);
  for (const Plot& plot : plots)
    for (const std::string& name : plot_file_names(plot))
      require_free(std::filesystem::path(directory) / name, output.overwrite, output.inputs);
  const PlotFiles files = write_plots(plots, directory);
  for (const std::filesystem::path& path : files.paths) print(path.string() + "\n");
  if (!files.is_converted)
    log_warning(
        "--plots: no PNG and PDF, because rsvg-convert was not found; install it (Debian, Ubuntu: apt-get "
        "install "
        "librsvg2-bin)");
}

}  // namespace shardmark

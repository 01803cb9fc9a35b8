// Plots as files.
#include "cli/plot_output.h"

#include "analysis/plots/gnuplot.h"
#include "base/error.h"

namespace shardmark {

CLI::Option* add_plots_flag(CLI::App& command, std::string& directory) {
  auto* plots =
      command.add_option("--plots", directory, "draw each plot with gnuplot: DIR/<key>.svg, .png, .pdf");
  for (const char* flag : kTableFlags) plots->excludes(command.get_option(flag));
  return plots;
}

void write_plot_files(const Plots& plots, const std::string& directory, const TableOutput& output,
                      const std::string& nothing) {
  if (plots.empty()) throw UsageError("--plots: nothing to plot: " + nothing);
  for (const Plot& plot : plots)
    for (const char* ending : {".svg", ".png", ".pdf", ".gp"})
      require_free(std::filesystem::path(directory) / (plot.key + ending), output.overwrite, output.inputs);
  for (const std::filesystem::path& path : write_plots(plots, directory)) print(path.string() + "\n");
}

}  // namespace shardmark

// Plots as files.
#include "cli/plot_output.h"

#include "analysis/plots/gnuplot.h"
#include "base/error.h"
#include "cli/table_output.h"

namespace shardmark {

CLI::Option* add_plots_flag(CLI::App& command, std::string& directory) {
  auto* plots =
      command.add_option("--plots", directory, "draw each plot with gnuplot: DIR/<key>.svg, .png, .pdf");
  for (const char* tables : {"--csv", "--json", "--markdown", "--table"})
    plots->excludes(command.get_option(tables));
  return plots;
}

void write_plot_files(const Plots& plots, const std::string& directory, bool overwrite,
                      const std::string& nothing) {
  if (plots.empty()) throw UsageError("--plots: nothing to plot: " + nothing);
  for (const Plot& plot : plots)
    require_free(std::filesystem::path(directory) / (plot.key + ".svg"), overwrite);
  for (const std::filesystem::path& path : write_plots(plots, directory)) print(path.string() + "\n");
}

}  // namespace shardmark

// Plots as files: SVG of our own, and PNG and PDF that librsvg's rsvg-convert makes of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/render/plot.h"

namespace shardmark {

// In the order in which they are written, for each plot: "<key>.svg", "<key>.png", "<key>.pdf".
std::vector<std::string> plot_file_names(const Plot& plot);

struct PlotFiles {
  std::vector<std::filesystem::path> paths;
  bool is_converted = true;  // false: there is no rsvg-convert, so that only the SVG files were written
};

// Writes the files of every plot into the directory, which is made where it lacks. UsageError: the directory
// cannot be written; SystemError: rsvg-convert failed.
PlotFiles write_plots(const std::vector<Plot>& plots, const std::filesystem::path& directory);

}  // namespace shardmark

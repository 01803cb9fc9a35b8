// Plots as files, drawn by gnuplot: SVG, PNG and PDF, and the script that makes them, for whoever wants
// another size, font or title in a paper.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/plots/plot.h"

namespace shardmark {

// A script that holds its data and writes <key>.svg, <key>.png and <key>.pdf into the working directory.
std::string gnuplot_script(const Plot& plot);

// Writes <key>.gp of every plot into the directory, which is made where it lacks, and runs gnuplot there.
// Returns the files. UsageError: the directory cannot be written, or there is no gnuplot; SystemError:
// gnuplot failed.
std::vector<std::filesystem::path> write_plots(const std::vector<Plot>& plots,
                                               const std::filesystem::path& directory);

}  // namespace shardmark

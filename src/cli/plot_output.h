// Writes the plots of a command; every command has the same flag for it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/plots/plots.h"
#include "cli/table_output.h"

namespace shardmark {

// Adds --plots DIR, which replaces tables. To be called after add_table_flags.
CLI::Option* add_plots_flag(CLI::App& command, std::string& directory);

// Writes the plots and prints the names of the files. Throws UsageError if a file exists and may not be
// replaced, or if there is nothing to plot (`nothing` says why).
void write_plot_files(const Plots& plots, const std::string& directory, const TableOutput& output,
                      const std::string& nothing);

}  // namespace shardmark

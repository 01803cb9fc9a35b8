// How a command draws its plots: by the same flag in every command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/plots/plots.h"
#include "cli/table_output.h"

namespace shardmark {

// --plots DIR, in place of tables. Call it after add_table_flags.
CLI::Option* add_plots_flag(CLI::App& command, std::string& directory);

// Prints the names of the files. UsageError: one is there already and must stay, or there is nothing to plot
// (`nothing` says why).
void write_plot_files(const Plots& plots, const std::string& directory, const TableOutput& output,
                      const std::string& nothing);

}  // namespace shardmark

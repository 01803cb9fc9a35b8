// The curves of a plot in gnuplot's words: data blocks, and the command that draws them. For
// gnuplot_script.cpp alone.
#pragma once

#include <string>

#include "analysis/plots/plot.h"

namespace shardmark {

struct GnuplotDrawing {
  std::string data;     // named blocks of numbers
  std::string command;  // "plot $data1 with ..."
};

GnuplotDrawing gnuplot_drawing(const Plot& plot);

// In single quotes, in which gnuplot interprets nothing; on one line.
std::string gnuplot_literal(const std::string& text);

}  // namespace shardmark

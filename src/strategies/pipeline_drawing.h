// Draws a pipeline's timeline as text, in the form of the papers' figures: stages from top to bottom, time
// from left to right. analysis/render/pipeline_svg.h draws it as SVG.
#pragma once

#include <string>

#include "strategies/pipeline_timeline.h"

namespace shardmark::strategies {

// For example "28.5 s, bubble 15.8 %, in flight 11, 9, 7, 5 (chunks of which a stage has 2)".
std::string summary(const PipelineTimeline& timeline);

// The letters "a", "b" ... that stand for chunks 0, 1 ...
std::string chunk_letter(int64_t chunk);

// Draws one line for each stage:
//   stage 0 |0 1 2 3 ............<0--4 <1--5 ...|
//   stage 1 |..0 1 2 ........<0--3 <1--4 <2--...|
// Forward is the number of the micro-batch, backward <0--, and a split backward <0- and w0. Chunks after the
// first one are marked b, c, d ...; dots are idle time. A drawing that is wider than `width` columns goes on
// below. The last line is a legend.
std::string draw_text(const PipelineTimeline& timeline, size_t width = 132);

}  // namespace shardmark::strategies

// A pipeline's timeline as people know it from the papers' figures, in text: stages from top to bottom, time
// from left to right. The same as SVG: analysis/plots/pipeline_svg.h.
#pragma once

#include <string>

#include "strategies/pipeline_timeline.h"

namespace shardmark::strategies {

// "28.5 s, bubble 15.8 %, in flight 11, 9, 7, 5 (chunks of which a stage has 2)"
std::string summary(const PipelineTimeline& timeline);

// "a", "b" ... of chunk 0, 1 ...
std::string chunk_letter(int64_t chunk);

//   stage 0 |0 1 2 3 ............<0--4 <1--5 ...|
//   stage 1 |..0 1 2 ........<0--3 <1--4 <2--...|
// Forward is the micro-batch's number, backward <0--, backward in two parts <0- and w0; chunks after the
// first are b, c, d ...; idle: dots. What is wider than `width` columns goes on below. The last line says
// what the signs mean.
std::string draw_text(const PipelineTimeline& timeline, size_t width = 132);

}  // namespace shardmark::strategies

// A pipeline's timeline as a drawing: stages from top to bottom, time from left to right, each action with
// the number of its micro-batch. As text: strategies/pipeline_drawing.h.
#pragma once

#include <string>

#include "strategies/pipeline_timeline.h"

namespace shardmark {

// An element for a page with plots' style. Colours tell forward, backward and its two parts, shades the
// chunks of a stage; a title on each action says when it begins and ends.
std::string pipeline_svg(const strategies::PipelineTimeline& timeline);

}  // namespace shardmark

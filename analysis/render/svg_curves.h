// The curves of a plot on an SVG canvas, each form in its own way.
#pragma once

#include "analysis/render/axis.h"
#include "analysis/render/svg_canvas.h"

namespace shardmark {

void draw_curves(SvgCanvas& canvas, const Plot& plot, const Frame& frame, const Range& over,
                 const Range& value);

// The sample of a curve that stands before its name in the legend, 24 wide from x on, around y.
void draw_key(SvgCanvas& canvas, const Plot& plot, const Curve& curve, double x, double y);

}  // namespace shardmark

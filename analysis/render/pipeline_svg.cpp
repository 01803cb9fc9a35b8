// Rectangles as long as their actions, on a grey ground that is what remains idle.
#include "analysis/render/pipeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/render/svg.h"
#include "analysis/render/svg_canvas.h"
#include "base/units.h"
#include "strategies/pipeline_drawing.h"

namespace shardmark {
namespace {

using strategies::Pass;
using strategies::PipelineTimeline;
using strategies::TimedAction;

constexpr double kRow = 22, kGap = 3;         // of a stage; between stages
constexpr double kLeast = 420, kMost = 1600;  // width of the time axis
constexpr double kTop = 24;                   // summary
constexpr double kKey = 12;                   // side of a sample of a colour

// Shades of the hues of style.h, [chunk], under black numbers; in grey, too, forward is lightest and weights
// are darkest. The fifth chunk has the first one's again.
using Shades = std::array<const char*, 4>;
constexpr Shades kForward = {"#BFDCEC", "#E3F0F7", "#A9CFE5", "#F0F7FB"};
constexpr Shades kBackward = {"#D98E1F", "#EBB461", "#C97F12", "#EFC382"};
constexpr Shades kWeight = {"#2E9E78", "#67B89C", "#1F8A66", "#8CCAB4"};
constexpr FillStyle kIdle = {"#F4F4F4", false};

const Shades& shades_of(Pass pass) {
  return pass == Pass::forward ? kForward : pass == Pass::backward_weight ? kWeight : kBackward;
}

FillStyle fill_of(Pass pass, int64_t chunk) {
  return {shades_of(pass)[static_cast<size_t>(chunk) % shades_of(pass).size()], false};
}

// Units per second: the shortest action holds its number, if the drawing then is not too wide.
double units_per_second(const PipelineTimeline& timeline) {
  double units = 0;
  for (const auto& rank : timeline.ranks)
    for (const TimedAction& timed : rank) {
      const double length_s = timed.end_s - timed.begin_s;
      const double number = text_width(std::to_string(timed.action.micro_batch)) + 4;
      if (length_s > 0) units = std::max(units, number / length_s);
    }
  if (timeline.length_s <= 0) return 0;
  return std::clamp(units, kLeast / timeline.length_s, kMost / timeline.length_s);
}

void draw_action(SvgCanvas& canvas, const PipelineTimeline& timeline, const TimedAction& timed, double left,
                 double top, double units) {
  const Frame frame{left + timed.begin_s * units, top, left + timed.end_s * units, top + kRow};
  canvas.rectangle(frame, fill_of(timed.action.pass, timed.action.chunk),
                   fmt::format("{}, {} to {}", describe(timed.action, timeline.chunks),
                               format_seconds(timed.begin_s), format_seconds(timed.end_s)));
  if (frame.width() > 2)
    canvas.text((frame.left + frame.right) / 2, top + kRow / 2 + 4, std::to_string(timed.action.micro_batch),
                "middle", frame.width() - 1);
}

// What each colour means, from the left; returns where the last one ends.
double draw_keys(SvgCanvas& canvas, const PipelineTimeline& timeline, double left, double y) {
  constexpr std::array<std::pair<Pass, const char*>, 4> kPasses = {
      {{Pass::forward, "forward"},
       {Pass::backward, "backward"},
       {Pass::backward_input, "backward, input"},
       {Pass::backward_weight, "backward, weights"}}};
  const auto draw_key = [&](const FillStyle& fill, const std::string& text) {
    canvas.rectangle({left, y - kKey + 2, left + kKey, y + 2}, fill, "");
    left += kKey + (text.empty() ? 0 : 5);
    canvas.text(left, y, text);
    left += text.empty() ? 0 : text_width(text) + 14;
  };
  for (const auto& [pass, name] : kPasses) {
    const bool is_used =
        std::any_of(timeline.ranks.begin(), timeline.ranks.end(), [&, wanted = pass](const auto& rank) {
          return std::any_of(rank.begin(), rank.end(),
                             [&](const TimedAction& timed) { return timed.action.pass == wanted; });
        });
    if (!is_used) continue;
    for (int64_t chunk = 0; chunk < timeline.chunks; ++chunk)
      draw_key(fill_of(pass, chunk), chunk + 1 == timeline.chunks ? name : "");
  }
  draw_key(kIdle, "idle");
  return left;
}

}  // namespace

std::string pipeline_svg(const PipelineTimeline& timeline) {
  const double left = text_width("stage 000") + 8, units = units_per_second(timeline);
  const double right = left + timeline.length_s * units;
  const double bottom = kTop + (kRow + kGap) * static_cast<double>(timeline.ranks.size());
  SvgCanvas canvas(right);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const double top = kTop + (kRow + kGap) * static_cast<double>(rank);
    canvas.text(left - 6, top + kRow / 2 + 4, fmt::format("stage {}", rank), "end");
    canvas.rectangle({left, top, right, top + kRow}, kIdle, "");
    for (const TimedAction& timed : timeline.ranks[rank])
      draw_action(canvas, timeline, timed, left, top, units);
  }
  const std::string about = summary(timeline);
  const double width =
      std::max({draw_keys(canvas, timeline, left, bottom + 14), left + text_width(about) + 8, right + 8});
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.1f} {1:.1f}' width='{0:.1f}' "
      "height='{1:.1f}'>\n<g class='plot'>\n<text x='{2:.1f}' y='14'>{3}</text>\n{4}</g>\n</svg>\n",
      width, bottom + 24, left, escaped_markup(about), canvas.elements());
}

}  // namespace shardmark

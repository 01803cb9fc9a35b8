// Chooses a place for the name of each mark: of several around the mark, the one that hides least.
#include "analysis/render/mark_names.h"

#include <algorithm>
#include <cmath>

namespace shardmark {
namespace {

constexpr double kMarkReach = 5, kLetterHeight = 9, kFromMark = 8;
constexpr double kFarther = 4;  // what a place costs that is one worse than another, in units of area

double shared_area(const Frame& a, const Frame& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

NamePlace at(double x, double y, const char* anchor, double width) {
  const double left = *anchor == 's' ? x : *anchor == 'e' ? x - width : x - width / 2;
  return {{left, y - kLetterHeight, left + width, y + 2}, x, y, anchor};
}

// The best ones first.
std::vector<NamePlace> candidates(const Place& mark, double width) {
  const double level = mark.y + 3.5, above = mark.y - kFromMark, below = mark.y + kFromMark + kLetterHeight;
  std::vector<NamePlace> places = {at(mark.x + kFromMark, level, "start", width),
                                   at(mark.x - kFromMark, level, "end", width),
                                   at(mark.x, above, "middle", width),
                                   at(mark.x, below, "middle", width),
                                   at(mark.x + kFromMark, above + 2, "start", width),
                                   at(mark.x + kFromMark, below - 2, "start", width),
                                   at(mark.x - kFromMark, above + 2, "end", width),
                                   at(mark.x - kFromMark, below - 2, "end", width)};
  for (const double farther : {1, 2})
    for (const double way : {-1, 1})
      for (const char* anchor : {"start", "end"})
        places.push_back(at(mark.x + (*anchor == 's' ? kFromMark : -kFromMark),
                            level + way * (kFromMark + farther * (kLetterHeight + 2)), anchor, width));
  return places;
}

}  // namespace

std::vector<NamePlace> name_places(const std::vector<Place>& marks, const std::vector<std::string>& names,
                                   const std::vector<Frame>& intervals, const Frame& frame) {
  std::vector<Frame> taken = intervals;
  for (const Place& mark : marks)
    taken.push_back({mark.x - kMarkReach, mark.y - kMarkReach, mark.x + kMarkReach, mark.y + kMarkReach});
  std::vector<NamePlace> chosen;
  for (size_t i = 0; i < marks.size(); ++i) {
    const std::vector<NamePlace> places = candidates(marks[i], text_width(names[i]));
    double least = INFINITY;
    size_t best = 0;
    for (size_t k = 0; k < places.size(); ++k) {
      const Frame& box = places[k].box;
      // Outside is as bad as on top of something.
      double cost = kFarther * static_cast<double>(k) + box.width() * box.height() - shared_area(box, frame);
      for (const Frame& other : taken) cost += shared_area(box, other);
      if (cost < least) {
        least = cost;
        best = k;
      }
    }
    taken.push_back(places[best].box);
    chosen.push_back(places[best]);
  }
  return chosen;
}

void draw_mark_names(SvgCanvas& canvas, const Plot& plot, const Frame& frame, const Range& over,
                     const Range& value) {
  std::vector<Place> marks;
  std::vector<std::string> names;
  std::vector<Frame> intervals;
  const auto height_of = [&](double at_value) {
    return frame.bottom - axis_place(plot.value, value, at_value) * frame.height();
  };
  for (const Curve& curve : plot.curves)
    for (const PlotPoint& point : curve.points) {
      if (!can_show(plot, point)) continue;
      const double x = frame.left + axis_place(plot.over, over, point.over) * frame.width();
      marks.push_back({x, height_of(point.value)});
      names.push_back(curve.name);
      if (has_interval(point))
        intervals.push_back({x - 3, height_of(point.high), x + 3, height_of(point.low)});
    }
  const std::vector<NamePlace> places = name_places(marks, names, intervals, frame);
  for (size_t i = 0; i < places.size(); ++i)
    canvas.name(places[i].x, places[i].y, names[i], places[i].anchor);
}

}  // namespace shardmark

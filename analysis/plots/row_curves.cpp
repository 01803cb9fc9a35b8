#include "analysis/plots/row_curves.h"

#include <fmt/format.h>

#include "analysis/frame/quantities.h"
#include "base/units.h"

namespace shardmark {

Curve row_curve(Curve curve, std::string_view name, const PointList& points,
                const std::vector<std::string>& rows, double larger) {
  const Quantity& of = quantity(name);
  const bool is_time = of.show == Quantity::Show::milliseconds;
  for (size_t row = 0; row < rows.size(); ++row) {
    const double value = of.of(*points[row]);
    PlotPoint& point = curve.points.emplace_back(static_cast<double>(row), in_unit(of, value) / larger);
    point.text = rows[row] + ": " + (is_time ? format_seconds(value) : format_bytes(value));
    if (is_time && curve.form == Form::bar)
      point.text += fmt::format(", {:.1f} % of the step", 100 * value / points[row]->measures.step_s);
  }
  return curve;
}

}  // namespace shardmark

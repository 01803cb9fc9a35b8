// What failures leave of predicted points.
#include <cmath>

#include "analysis/predict/tables.h"
#include "base/stats.h"

namespace shardmark {
namespace {

// Median over the measured points of a family; a NaN where no device said.
double watts_of_family(const std::vector<MergedPoint>& points, const std::string& family) {
  std::vector<double> watts;
  for (const MergedPoint& merged : points)
    if (merged.family == family && watts_of_rank(merged) > 0) watts.push_back(watts_of_rank(merged));
  return watts.empty() ? Measures::kNone : median(watts);
}

}  // namespace

std::vector<GoodputRow> predicted_goodput(const std::vector<StudyData>& studies,
                                          const std::vector<MergedPoint>& points, const BestPoints& best,
                                          const FailureQuery& query) {
  GoodputRows rows(studies, query);
  for (const auto& [key, one] : best)
    rows.add(*one->like, one->prediction.point, one->nodes(), throughput_of(*one),
             watts_of_family(points, one->like->family));
  return rows.rows();
}

}  // namespace shardmark

// What failures leave of measured points, and of training runs.
#include "analysis/stats/goodput.h"

#include "analysis/frame/training_columns.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

// Whole runs, as if a sweep had measured their steps.
std::vector<MergedPoint> points_of_runs(const std::vector<StudyData>& studies) {
  std::vector<MergedPoint> points;
  for (const StudyData& study : studies)
    for (Record record : study.records) {
      if (record.point.workload != "train" || !(record.measures.samples_per_s > 0)) continue;
      record.point.workload = "training";
      points.push_back(as_merged(record, study.environment));
    }
  return points;
}

}  // namespace

Table measured_goodput_table(const std::vector<StudyData>& studies, const MergedPoints& points,
                             const FailureQuery& query, double price_per_gpu_hour) {
  MergedPoints all;
  GoodputRows rows(studies, query);
  if (query.is_asked()) {
    for (const MergedPoint* merged : training_points(points, trains_one_model)) all.push_back(*merged);
    for (MergedPoint& run : points_of_runs(studies)) all.push_back(std::move(run));
  }
  for (const MergedPoint& merged : all)
    rows.add(merged, merged.point, merged.nodes, throughput_of(merged), watts_of_rank(merged));
  return goodput_table(all, query.is_asked() ? rows.rows() : std::vector<GoodputRow>(), query,
                       price_per_gpu_hour);
}

}  // namespace shardmark

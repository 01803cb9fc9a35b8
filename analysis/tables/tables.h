// One function per table of the report, each in a file of its own. A table without rows is left out of the
// report.
#pragma once

#include <optional>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/stats/goodput.h"
#include "analysis/stats/nodes.h"
#include "analysis/stats/scaling.h"
#include "analysis/table/table.h"

namespace shardmark {

using MergedPoints = std::vector<MergedPoint>;

Table studies_table(const std::vector<StudyData>& studies);
Table nodes_table(const std::optional<NodesJudged>& judged);  // a verdict on each
// With a price above 0 also what training costs.
Table strategies_table(const MergedPoints& points, double price_per_gpu_hour = Measures::kNone);
Table sequences_table(const MergedPoints& points);
Table phases_table(const MergedPoints& points);
Table start_table(const MergedPoints& points);  // the time to the first step
Table layouts_table(const MergedPoints& points);
Table settings_table(const MergedPoints& points);
Table together_table(const MergedPoints& points);
// Times, devices, slow ranks; also of runs that did not come to their end.
std::vector<Table> sustained_tables(const MergedPoints& points, const MergedPoints& unfinished);
Table optimizations_table(const MergedPoints& points);
Table accumulation_table(const MergedPoints& points);
Table scaling_table(Scaling scaling, const MergedPoints& points, const std::vector<ScalingSeries>& all);
Table efficiency_limits_table(const MergedPoints& points, const std::vector<ScalingSeries>& all);
Table scaling_laws_table(const MergedPoints& points, const std::vector<ScalingSeries>& all);
Table fit_quality_table(const MergedPoints& points, const std::vector<ScalingSeries>& all);
Table memory_table(const MergedPoints& points);
Table experts_table(const MergedPoints& points);
Table checkpoints_table(const MergedPoints& points);  // of points with `save`
Table largest_table(const std::vector<StudyData>& studies, const MergedPoints& points);
Table network_table(const MergedPoints& points);                   // what their ports counted
Table communication_table(const MergedPoints& points);             // of a step
std::vector<Table> collective_tables(const MergedPoints& points);  // one per operation and rank count
Table runs_table(const std::vector<StudyData>& studies);           // of shardmark train
// Also of runs of shardmark train; empty without a time to restart. UsageError: no checkpoint was timed.
Table measured_goodput_table(const std::vector<StudyData>& studies, const MergedPoints& points,
                             const FailureQuery& query, double price_per_gpu_hour);
// Points without a result, findings, and what a report of these studies lacks.
Table problems_table(const std::vector<StudyData>& studies, const MergedPoints& points,
                     const MergedPoints& unfinished, const std::vector<ScalingSeries>& scaling);

}  // namespace shardmark

// One function per kind of plot, each in a file of its own, and all of them together. A study that lacks the
// points for a kind gets none of it.
#pragma once

#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/frame/names.h"
#include "analysis/render/plot.h"
#include "analysis/stats/scaling.h"
#include "specs/link.h"

namespace shardmark {

using Plots = std::vector<Plot>;
struct OneRankStep;     // interconnects.h
struct PredictedPoint;  // predict/tables.h
struct GoodputRow;      // stats/goodput.h
struct FailureQuery;

inline PlotPoint plot_point(double over, const Estimate& value, std::string text,
                            bool is_unreliable = false) {
  return {over, value.value, value.low, value.high, std::move(text), is_unreliable};
}

Plots speed_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots sequence_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots phase_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots layout_plots(const std::vector<MergedPoint>& points);
Plots sample_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots sustained_plots(const std::vector<MergedPoint>& points);
Plots scaling_plots(const std::vector<ScalingSeries>& all, const PlotNames& names);
Plots law_plots(const std::vector<ScalingSeries>& all, const PlotNames& names);
// ranks: of the all-reduce.
Plots interconnect_plots(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                         int64_t ranks);
// Throughput over the numbers of ranks that were asked for.
Plots predicted_plots(const std::vector<PredictedPoint>& predicted, const PlotNames& names);
// Among the rows of one family each number of ranks is drawn once.
Plots goodput_plots(const std::vector<GoodputRow>& rows, const FailureQuery& query, const PlotNames& names);
Plots prediction_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots memory_plots(const std::vector<MergedPoint>& points, const PlotNames& names);
Plots collective_plots(const std::vector<MergedPoint>& points);
Plots loss_plots(const std::vector<StudyData>& studies);

// Plots of the same key get numbers behind it.
Plots with_unique_keys(Plots plots);

// All of them, in the order of the report's tables, with keys that are unique. scaling: of the points.
Plots make_plots(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                 const std::vector<ScalingSeries>& scaling, const std::vector<specs::Link>& links);
Plots make_plots(const std::vector<StudyData>& studies,
                 const std::vector<specs::Link>& links = specs::interconnect_links());

}  // namespace shardmark

// The order of the plots, and their names.
#include "analysis/plots/plots.h"

#include <map>

namespace shardmark {

Plots make_plots(const std::vector<StudyData>& studies) {
  const std::vector<MergedPoint> points = merge_repeats(studies);
  const PlotNames names(points);
  Plots all;
  for (const auto& make : {phase_plots, sample_plots, scaling_plots, memory_plots})
    for (Plot& plot : make(points, names)) all.push_back(std::move(plot));
  for (Plot& plot : collective_plots(points)) all.push_back(std::move(plot));
  for (Plot& plot : loss_plots(studies)) all.push_back(std::move(plot));

  std::map<std::string, int> total, so_far;
  for (const Plot& plot : all) ++total[plot.key];
  for (Plot& plot : all)
    if (const int number = ++so_far[plot.key]; total[plot.key] > 1) plot.key += "_" + std::to_string(number);
  return all;
}

}  // namespace shardmark

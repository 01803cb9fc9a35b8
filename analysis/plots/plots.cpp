// The order of the plots, and their names.
#include "analysis/plots/plots.h"

#include <map>
#include <set>

#include "analysis/stats/interconnects.h"

namespace shardmark {

namespace {

// Where everything was measured on the same device, plots say which; of several machines the names of points
// say it.
std::string only_device(const std::vector<StudyData>& studies) {
  std::set<std::string> devices;
  for (const StudyData& study : studies)
    devices.insert(study.environment.devices.begin(), study.environment.devices.end());
  return devices.size() == 1 ? *devices.begin() : "";
}

bool is_by_formula(const Plot& plot) { return plot.table == "interconnects"; }

void name_device(Plots& plots, const std::string& device) {
  if (device.empty()) return;
  for (Plot& plot : plots)
    if (!is_by_formula(plot) && plot.about.find(device) == std::string::npos)
      plot.about += (plot.about.empty() ? "" : ", ") + device;
}

}  // namespace

Plots make_plots(const std::vector<StudyData>& studies, const std::vector<specs::Link>& links) {
  const std::vector<MergedPoint> points = merge_repeats(studies);
  return make_plots(studies, points, scaling_series(points), links);
}

Plots make_plots(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                 const std::vector<ScalingSeries>& scaling, const std::vector<specs::Link>& links) {
  const PlotNames names(points);
  Plots all;
  const auto add = [&](Plots plots) {
    for (Plot& plot : plots) all.push_back(std::move(plot));
  };
  add(speed_plots(points, names));
  add(sequence_plots(points, names));
  add(phase_plots(points, names));
  add(layout_plots(points));
  add(sample_plots(points, names));
  add(sustained_plots(points));
  add(scaling_plots(scaling, names));
  add(law_plots(scaling, names));
  add(interconnect_plots(workloads(points), links, /*ranks=*/8));
  add(prediction_plots(points, names));
  add(memory_plots(points, names));
  add(collective_plots(points));
  add(loss_plots(studies));
  name_device(all, only_device(studies));
  return with_unique_keys(std::move(all));
}

Plots with_unique_keys(Plots plots) {
  std::map<std::string, int> total, so_far;
  for (const Plot& plot : plots) ++total[plot.key];
  for (Plot& plot : plots)
    if (const int number = ++so_far[plot.key]; total[plot.key] > 1) plot.key += "_" + std::to_string(number);
  return plots;
}

}  // namespace shardmark

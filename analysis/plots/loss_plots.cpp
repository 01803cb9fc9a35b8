// Loss curves of training runs.
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "analysis/frame/groups.h"
#include "analysis/plots/plots.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr int64_t kMostPoints = 400;  // of a curve: as many as a plot is wide

// The run's losses; of a long run the mean of each stretch.
Curve loss_curve(const Record& record, const std::string& name, int style) {
  Curve curve{name, Form::law, style, {}};
  const Series& loss = *record.series("loss");
  // At most kMostPoints stretches of equal length. A stretch stands at its last step.
  const int64_t stretch = (loss.columns + kMostPoints - 1) / kMostPoints;
  for (int64_t begin = 0; begin < loss.columns; begin += stretch) {
    const int64_t end = std::min(begin + stretch, loss.columns);
    double sum = 0;
    for (int64_t step = begin; step < end; ++step) sum += loss.at(0, step);
    const double value = sum / static_cast<double>(end - begin);
    const int64_t at = record.point.workload == "train" ? record.measures.first_step + end : end;
    curve.points.push_back({static_cast<double>(at), value});
    curve.points.back().text =
        fmt::format("step {}: loss {}", format_count(static_cast<double>(at)), format_number(value, 5));
  }
  return curve;
}

Curve held_out_curve(const Record& record, const std::string& name, int style) {
  Curve curve{name + ", held out", Form::measured, style, {}};
  const Series *at = record.series("held_out_at"), *loss = record.series("held_out_loss");
  for (int64_t i = 0; at != nullptr && loss != nullptr && i < std::min(at->columns, loss->columns); ++i) {
    curve.points.push_back({at->at(0, i), loss->at(0, i)});
    curve.points.back().text =
        fmt::format("after step {}: loss {}", format_count(at->at(0, i)), format_number(loss->at(0, i), 5));
  }
  return curve;
}

std::string run_name(const Record& record) {
  const TrainingPoint& t = record.point.training;
  std::string name = fmt::format("{}, {}", strategy_text(t), ranks_text(record.point.ranks));
  if (t.products.name != "compute") name += ", " + brief_text("products", t.products);
  if (record.measures.first_step > 0) name += fmt::format(", from step {}", record.measures.first_step);
  return name;
}

}  // namespace

Plots loss_plots(const std::vector<StudyData>& studies) {
  std::vector<const Record*> runs;
  const auto add = [&](const Record& record) {
    const Series* loss = record.series("loss");
    if (record.point.workload == "train" && loss != nullptr && loss->columns > 0) runs.push_back(&record);
  };
  for (const StudyData& study : studies) {
    for (const Record& record : study.records) add(record);
    if (study.under_way) add(*study.under_way);  // or its job was killed
  }
  Plots plots;
  for (const auto& group : groups_of(runs, [](const Record& run) {
         const TrainingPoint& t = run.point.training;
         return std::tuple(to_text(t.model), to_text(t.data), t.precision);
       })) {
    const TrainingPoint& t = group.front()->point.training;
    Plot& plot = plots.emplace_back(
        Plot{"loss",
             "runs",
             "Loss of training runs",
             fmt::format("{} on {}, {}", t.model.name, t.data.name, t.precision),
             "Mean over the ranks; for a long run, over groups of consecutive steps. Markers: "
             "loss on held-out samples.",
             {"step"},
             {"loss", Scale::linear, false},
             {},
             {}});
    for (size_t i = 0; i < group.size(); ++i) {
      plot.curves.push_back(loss_curve(*group[i], run_name(*group[i]), static_cast<int>(i)));
      plot.curves.push_back(held_out_curve(*group[i], run_name(*group[i]), static_cast<int>(i)));
    }
    std::erase_if(plot.curves, [](const Curve& curve) { return curve.points.empty(); });
  }
  return plots;
}

}  // namespace shardmark

// Which layout is fastest, over all that take the same samples in a step.
#include "analysis/frame/layouts.h"

#include <fmt/format.h>

#include <map>

#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string name_of_layout(const MergedPoint& merged) {
  const TrainingPoint& t = merged.point.training;
  return layout_text(merged.point) + (t.rank_order == "pp-dp" ? ", pp-dp" : "") + ", " + strategy_text(t);
}

}  // namespace

OverviewTable layouts_overview(const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Layouts of one global batch, the fastest first",
      "layouts",
      {{.name = "layout", .numeric = false},
       {.name = "step", .unit = "ms", .definition = "median over the steps, of the slowest rank's time."},
       {.name = "x fastest", .definition = "step / that of the fastest layout."},
       {.name = "peak memory",
        .unit = "MiB",
        .definition = "highest total during a step, on the rank that needs most."},
       {.name = "waiting",
        .unit = "%",
        .definition =
            "the part of a step during which computing waited for other ranks: for data, other parts of "
            "the model, or stages of the pipeline."}},
      {},
      {}};
  bool any_unsure = false;
  for (const Layouts& layouts : layouts_of(points)) {
    const MergedPoint& fastest = *layouts.front();
    OverviewGroup& group = table.groups.emplace_back(OverviewGroup{
        fmt::format("{}, {}, global batch {}, {}", brief_text("model", fastest.point.training.model),
                    fastest.point.training.precision, fastest.point.global_batch(), ranks_text(fastest)),
        {}});
    std::map<std::string, int> named;
    for (const MergedPoint* merged : layouts) ++named[name_of_layout(*merged)];
    const size_t unsure = num_perhaps_fastest(layouts);
    for (size_t place = 0; place < layouts.size(); ++place) {
      const MergedPoint& merged = *layouts[place];
      const Measures& m = merged.measures;
      const bool is_unsure = unsure >= 2 && place < unsure;
      any_unsure = any_unsure || is_unsure;
      Cell ratio = cells::number(m.step_s / fastest.measures.step_s, 3);
      if (is_unsure || is_unreliable(merged)) ratio.text += kMark;
      std::string name = name_of_layout(merged);
      if (named[name] > 1)
        name += fmt::format(", {} micro-batches of {}", merged.point.training.accumulation,
                            merged.point.training.batch_size);
      group.rows.push_back({cells::words(name), cells::milliseconds(m.step_s), std::move(ratio),
                            cells::mebibytes(m.peak_bytes), cells::percent(m.exposed_s / m.step_s)});
    }
  }
  if (any_unsure)
    table.notes.emplace_back(
        "?: another launch may give another order. To rank layouts, start the suite 3 times or more and give "
        "report all studies.");
  return table;
}

}  // namespace shardmark

// Which layout is fastest, over all that take the same samples in a step.
#include "analysis/frame/layouts.h"

#include <fmt/format.h>

#include <map>

#include "analysis/frame/names.h"
#include "analysis/frame/quantities.h"
#include "analysis/overview/overview.h"
#include "analysis/overview/ranked.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// What tells layouts of one group apart. Two that differ in nothing else differ in their micro-batches.
std::vector<LabelParts> parts_of(const Layouts& layouts) {
  std::vector<LabelParts> all;
  std::map<std::string, int> named;
  const auto name = [](const MergedPoint& one) {
    return layout_text(one.point) + one.point.training.rank_order + strategy_text(one.point.training);
  };
  for (const MergedPoint* merged : layouts) ++named[name(*merged)];
  for (const MergedPoint* merged : layouts) {
    const TrainingPoint& t = merged->point.training;
    LabelParts& parts = all.emplace_back();
    parts.push_back({"layout", layout_text(merged->point), {}, Said::always});
    parts.push_back({"rank order", t.rank_order == "pp-dp" ? "pp-dp" : ""});
    parts.push_back(choice_part("strategy", strategy_text(t)));
    parts.push_back({"accumulation", named[name(*merged)] > 1
                                         ? fmt::format("{} micro-batches of {}", t.accumulation, t.batch_size)
                                         : ""});
  }
  return all;
}

}  // namespace

OverviewTable layouts_overview(const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Layouts of one global batch, the fastest first",
      "layouts",
      {{.name = "layout", .numeric = false},
       column_of({"step"}),
       slower_column("layout"),
       column_of({"peak_bytes"}),
       {.name = "waiting",
        .unit = "%",
        .definition =
            "the part of a step during which computing waited for other ranks: for data, other parts of "
            "the model, or stages of the pipeline."}},
      {},
      {}};
  TierNotes notes;
  const PlotNames names(points);
  std::vector<LabelParts> labels;  // of the groups
  for (const Layouts& layouts : layouts_of(points)) {
    const Ranking ranking(layouts);
    OverviewGroup& group = table.groups.emplace_back();
    std::vector<LabelParts> families;
    for (const MergedPoint* one : layouts) {
      const MergedPoint& merged = *one;
      const Tier tier = group.tiers.emplace_back(ranking.tier(merged));
      notes.add(merged, tier);
      group.rows.push_back(
          {cells::words(""), cell_of(quantity("step"), merged), slower_cell(merged, *layouts.front(), tier),
           cell_of(quantity("peak_bytes"), merged), cell_of(quantity("exposed_share"), merged)});
      families.push_back(names.parts(
          merged, {{"batch", batch_text(merged.point.global_batch(), true)}, {"ranks", ranks_text(merged)}}));
    }
    LabelParts& parts = labels.emplace_back(common_parts(families));
    parts.push_back({"strategy", name_rows(group, parts_of(layouts))});
    std::erase_if(parts, [](const LabelPart& part) { return part.axis == "accumulation"; });
  }
  name_groups(table, labels);
  notes.append_to(table.notes);
  return table;
}

}  // namespace shardmark

// Collectives beside a load: how much each slows the other down, and whether overlapping them gains anything.
#include "analysis/together.h"

#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

struct TogetherRow {
  const MergedPoint* merged;
  Together found;
};

ColumnOf<TogetherRow> ratio_column(const char* name, const char* group, double Estimate::*part,
                                   Estimate Together::*ratio, const char* definition) {
  return {{name, "", true, false, group},
          [=](const auto& row) { return cells::number((row.found.*ratio).*part, 3); },
          definition};
}

ColumnsOf<TogetherRow> ratio_columns(const char* group, Estimate Together::*ratio, const char* definition) {
  return {ratio_column("median", group, &Estimate::value, ratio, definition),
          ratio_column("low", group, &Estimate::low, ratio, "95 % interval of that median."),
          ratio_column("high", group, &Estimate::high, ratio, "95 % interval of that median.")};
}

ColumnsOf<TogetherRow> together_columns() {
  return join(
      ColumnsOf<TogetherRow>{{{"load", "ms", true, false, "alone, of a round"},
                              [](const auto& row) { return cells::milliseconds(row.found.load_s); },
                              "repeated until it is about as long as the collectives of a round."},
                             {{"collective", "ms", true, false, "alone, of a round"},
                              [](const auto& row) { return cells::milliseconds(row.found.collective_s); },
                              "all collectives of a round."}},
      ratio_columns("slow-down of the load", &Together::load,
                    "its time while the collective runs / alone, on the slowest rank."),
      ratio_columns("of the collective", &Together::collective,
                    "its time while the load runs / alone, on the slowest rank."),
      ratio_columns(
          "gain", &Together::gain,
          "one after the other / at once: 2 where both hide each other, 1 where overlapping gains nothing, "
          "below 1 where it loses."));
}

}  // namespace

Table together_table(const MergedPoints& points) {
  std::vector<TogetherRow> rows;
  for (const MergedPoint& merged : points)
    if (auto found = together_of(merged)) rows.push_back({&merged, *found});
  return make_table(
      "together", "Two things at once: a collective beside a load",
      join(via(&TogetherRow::merged, join(about_columns(), ColumnsOf<MergedPoint>{beside_column()})),
           together_columns(), via(&TogetherRow::merged, TrainingColumns::warnings())),
      rows);
}

}  // namespace shardmark

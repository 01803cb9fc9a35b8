// Collectives beside a load: how much of the shorter one is hidden when both run at the same time.
#include "analysis/frame/together.h"

#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

struct TogetherRow {
  const MergedPoint* merged;
  Together found;
};

auto ratio_of(double Estimate::*part) {
  return [=](const TogetherRow& row) { return cells::number(row.found.ratio.*part, 3); };
}
auto alone_of(double Together::*time) {
  return [=](const TogetherRow& row) { return cells::milliseconds(row.found.*time); };
}
auto slowdown_of(double Together::*slowdown) {
  return [=](const TogetherRow& row) {
    return cells::number(row.found.is_alike() ? row.found.*slowdown : Measures::kNone, 3);
  };
}

constexpr const char* kRatioGroup = "together / longer alone";
constexpr const char* kRatioInterval = "95 % interval of that median.";
constexpr const char* kSlowdown =
    "its time while the other one runs / alone. Both start at the same time. Shown where both take about "
    "equally long alone (the shorter one at least 75 % of the longer one).";

ColumnsOf<TogetherRow> together_columns() {
  return {
      {choice_column("beside"),
       [](const auto& row) {
         const std::string& text = row.merged->point.collective.beside;
         return Cell{brief_text("beside", text), text};
       },
       "what the ranks do while the collective runs."},
      {{"load", "ms", true, false, "alone"},
       alone_of(&Together::load_s),
       "the load of a round by itself, on the slowest rank. It is repeated until it takes as long as the "
       "collectives of a round."},
      {{"collective", "ms", true, false, "alone"},
       alone_of(&Together::collective_s),
       "all collectives of a round by themselves, on the slowest rank."},
      {{"together", "ms"},
       alone_of(&Together::together_s),
       "both at the same time, until the later one has ended."},
      {{"median", "", true, false, kRatioGroup},
       ratio_of(&Estimate::value),
       "time together / the longer one alone, median over rounds. 1.00: the longer one hides the other "
       "completely. As large as `no overlap`: as if one ran after the other. Larger: they disturb each "
       "other."},
      {{"low", "", true, false, kRatioGroup}, ratio_of(&Estimate::low), kRatioInterval},
      {{"high", "", true, false, kRatioGroup}, ratio_of(&Estimate::high), kRatioInterval},
      {{"no overlap", ""},
       [](const auto& row) { return cells::number(row.found.no_overlap, 3); },
       "the sum of both alone / the longer one alone: the ratio if one ran after the other."},
      {{"hidden", "%"},
       [](const auto& row) { return cells::percent(row.found.credible_hidden(), 0); },
       "how much of the shorter one was hidden: (sum of both alone - together) / the shorter one alone. "
       "Below 0: running one after the other would be faster. -: times vary too much to say."},
      {{"load", "", true, false, "slow-down"}, slowdown_of(&Together::load_slowdown), kSlowdown},
      {{"collective", "", true, false, "slow-down"}, slowdown_of(&Together::collective_slowdown), kSlowdown}};
}

}  // namespace

Table together_table(const MergedPoints& points) {
  std::vector<TogetherRow> rows;
  for (const MergedPoint& merged : points)
    if (auto found = together_of(merged)) rows.push_back({&merged, *found});
  return make_table("together", "Two things at once: a collective beside a load",
                    join(via(&TogetherRow::merged, about_columns()), together_columns(),
                         via(&TogetherRow::merged, TrainingColumns::warnings())),
                    rows);
}

}  // namespace shardmark

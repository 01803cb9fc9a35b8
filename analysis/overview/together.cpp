// What a collective and other work cost each other when they run at the same time, a row for each load.
#include "analysis/frame/together.h"

#include <fmt/format.h>

#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/table/cells.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {

OverviewTable together_overview(const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Two things at once",
      "together",
      {{.name = "beside", .numeric = false, .is_brief = true},
       {.name = "load alone", .unit = "ms", .definition = "what runs beside the collective, by itself."},
       {.name = "collective alone", .unit = "ms", .definition = "the collectives of a round by themselves."},
       {.name = "together",
        .unit = "ms",
        .definition = "both at the same time, until the later one has ended."},
       {.name = "/ longer",
        .definition =
            "time together / the longer one alone. 1.00: the longer one hides the other completely; "
            "2.00, where both are equally long: as if one ran after the other."},
       {.name = "hidden",
        .unit = "%",
        .definition = "how much of the shorter one was hidden; below 0: running one after the other would be "
                      "faster."}},
      {},
      {}};
  for (const MergedPoint& merged : points) {
    const auto found = together_of(merged);
    if (!found) continue;
    const CollectivePoint& c = merged.point.collective;
    const std::string setting =
        fmt::format("{} of {}{}, {}", operation_text(c), format_bytes(static_cast<double>(c.bytes)),
                    c.in_place ? "" : " out of place", collective_setting_text(merged));
    if (table.groups.empty() || table.groups.back().setting != setting) table.groups.push_back({setting, {}});
    Cell beside = cells::words(brief_text("beside", c.beside));
    beside.value = c.beside;
    table.groups.back().rows.push_back(
        {std::move(beside),
         cells::milliseconds(found->load_s),
         cells::milliseconds(found->collective_s),
         cells::milliseconds(found->together_s),
         {cells::number(found->ratio.value, 3).text + (is_unreliable(merged) ? " ?" : ""),
          found->ratio.value},
         cells::percent(found->credible_hidden(), 0)});
  }
  return table;
}

}  // namespace shardmark

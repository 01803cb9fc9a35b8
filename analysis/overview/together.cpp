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
  std::vector<LabelParts> settings, loads;
  const auto is_as_before = [&](const LabelParts& parts) {
    return !settings.empty() && labels_of({settings.back(), parts}).names == std::vector<std::string>(2);
  };
  for (const MergedPoint& merged : points) {
    const auto found = together_of(merged);
    if (!found) continue;
    const CollectivePoint& c = merged.point.collective;
    LabelParts parts = {
        {"operation", fmt::format("{} of {}{}", operation_text(c), format_bytes(static_cast<double>(c.bytes)),
                                  c.in_place ? "" : " out of place")}};
    for (LabelPart& part : collective_setting_parts(merged)) parts.push_back(std::move(part));
    if (!is_as_before(parts)) {
      settings.push_back(std::move(parts));
      table.groups.emplace_back();
    }
    const std::string beside_text = brief_text("beside", c.beside);
    loads.push_back({choice_part("beside", beside_text, Said::always)});
    Cell beside = cells::words(beside_text);
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
  // A load is named in all groups alike.
  const Labels named = labels_of(loads);
  size_t place = 0;
  for (OverviewGroup& group : table.groups)
    for (auto& row : group.rows) row.front().text = named.names[place++];
  name_groups(table, settings);
  if (!named.shared.empty()) table.shared += (table.shared.empty() ? "" : "; ") + named.shared;
  return table;
}

}  // namespace shardmark

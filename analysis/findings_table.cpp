// Findings in words, each with the point it is about.
#include "analysis/cells.h"
#include "analysis/findings.h"
#include "analysis/known.h"
#include "base/units.h"

namespace shardmark {
namespace {

std::vector<Cell> about(const MergedPoint& merged) {
  const Point& p = merged.point;
  if (is_training(merged)) {
    const Choice& strategy = p.training.strategy;
    return {cells::words(p.training.model.name),
            cells::words(to_text(without_defaults(strategy, known_options(strategy)))), cells::count(p.ranks),
            cells::words("batch " + std::to_string(p.training.batch_size))};
  }
  const CollectivePoint& c = p.collective;
  return {cells::words(c.operation), cells::words(c.in_place ? "in place" : "out of place"),
          cells::count(p.ranks), cells::words(format_bytes(static_cast<double>(c.bytes)))};
}

}  // namespace

Table findings_table(const std::vector<MergedPoint>& points) {
  Table table{"findings",
              "Findings: numbers to look at twice",
              {"An operation should not take longer than a larger message of it, than the pieces it could be "
               "cut into, or "
               "than other operations that together do its work (Traeff, Gropp and Thakur 2010); differences "
               "below 25 % "
               "or within the 95 % intervals are no finding, and of each kind the worst size is named.",
               "fits left out: no fit uses the point."},
              {{"model, operation", "", false},
               {"strategy, place", "", false},
               {"ranks", ""},
               {"batch or size", "", false},
               {"finding", "", false},
               {"what", "", false},
               {"fits", "", false, true}},
              {}};
  for (const Finding& finding : findings_of(points))
    table.rows.push_back(concat<Cell>({about(*finding.about),
                                       {cells::words(finding.kind), cells::words(finding.words),
                                        finding.excludes ? cells::words("left out") : Cell{"", nullptr}}}));
  return table;
}

}  // namespace shardmark

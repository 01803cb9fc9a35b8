// Findings in words, each with the point it is about.
#include "analysis/about.h"
#include "analysis/cells.h"
#include "analysis/findings.h"

namespace shardmark {
Table findings_table(const std::vector<MergedPoint>& points, const std::vector<MergedPoint>& unfinished) {
  Table table{
      "findings",
      "Findings: numbers to look at twice",
      {"An operation should not take longer than a larger message of it, than the pieces it could be "
       "cut into, or "
       "than other operations that together do its work (Traeff, Gropp and Thakur 2010); less than 1.25 "
       "times as long, or a difference within the 95 % intervals, is no finding, and of each kind the worst "
       "size is named.",
       "fits left out: no fit uses the point."},
      concat<Column>(
          {about_columns(), {{"finding", "", false}, {"what", "", false}, {"fits", "", false, true}}}),
      {}};
  for (const Finding& finding : findings_of(points, unfinished))
    table.rows.push_back(concat<Cell>({about_cells(*finding.about),
                                       {cells::words(finding.kind), cells::words(finding.words),
                                        finding.excludes ? cells::words("left out") : Cell{"", nullptr}}}));
  return table;
}

}  // namespace shardmark

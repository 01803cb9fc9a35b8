// The report that the draft asks for (formulas.h): its metrics, and its reporting form.
#pragma once

#include <string>
#include <vector>

#include "analysis/bmwg/measured.h"
#include "analysis/table/table.h"

namespace shardmark {

inline constexpr const char* kBmwgRevision =
    "draft-calabria-bmwg-ai-fabric-training-bench, a work in progress: editors' copy of 1 October 2026, "
    "after "
    "revision 04; terms of draft-calabria-bmwg-ai-fabric-terminology-04";

// A metric of the draft: its value, or why the studies cannot say it.
struct BmwgMetric {
  std::string section, name, unit;
  double value = Measures::kNone;
  std::string of = "";  // which point, or how it was made
  int64_t samples = 0;  // that the value was made from
  std::string why_not = "";
};
// Those with a value first, then by what is missing; in the order of the draft.
std::vector<BmwgMetric> bmwg_metrics(const std::vector<MergedPoint>& points, const BmwgQuery& query);

// A line of the report that section 13 describes.
struct BmwgFormLine {
  std::string part, item;
  std::string said;  // empty: not stated
};
std::vector<BmwgFormLine> bmwg_form(const std::vector<StudyData>& studies,
                                    const std::vector<MergedPoint>& points, const BmwgQuery& query);

Table bmwg_table(const std::vector<BmwgMetric>& rows);
Table bmwg_collectives_table(const std::vector<BmwgCollective>& rows);
Table bmwg_jct_table(const std::vector<BmwgJct>& rows);
Table bmwg_form_table(const std::vector<BmwgFormLine>& rows);
// All of them; without rows where nobody asks: neither a flag, nor the name of a table, nor a study that
// suites/bmwg.yaml made.
std::vector<Table> bmwg_tables(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                               const BmwgQuery& query);

}  // namespace shardmark

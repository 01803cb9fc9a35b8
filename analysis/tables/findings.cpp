// Findings in words, each with the point it is about.
#include "analysis/findings/findings.h"

#include "analysis/table/cells.h"
#include "analysis/tables/about.h"

namespace shardmark {
namespace {

ColumnsOf<PointFinding> finding_columns() {
  return {{{"finding", "", false}, [](const auto& finding) { return cells::words(finding.kind); }},
          {{"what", "", false}, [](const auto& finding) { return cells::words(finding.words); }},
          {{"fits", "", false, true},
           [](const auto& finding) {
             return finding.excludes ? cells::words("left out") : Cell{"", nullptr};
           },
           "left out: no fit uses the point."}};
}

}  // namespace

Table findings_table(const std::vector<MergedPoint>& points, const std::vector<MergedPoint>& unfinished) {
  Table table = make_table("findings", "Findings: results to check",
                           join(via(&PointFinding::about, about_columns()), finding_columns()),
                           findings_of(points, unfinished));
  table.explanations.emplace(
      table.explanations.begin(),
      "An operation should not take longer than a larger message of it, than the smaller messages it could "
      "be split into, or than other operations that together do its work (Traeff, Gropp and Thakur 2010); "
      "ratios below 1.25 and differences within the 95 % intervals are not reported, and of each kind only "
      "the worst size is shown. Efficiency should not pass 100 %, nor rise with more ranks: differences "
      "below "
      "2 % and within the 95 % intervals are not reported.");
  return table;
}

}  // namespace shardmark

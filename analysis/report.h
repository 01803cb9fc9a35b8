// The report: every table that can be made from one or several studies.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/reference/matched.h"
#include "analysis/reference/rates.h"
#include "analysis/stats/goodput.h"
#include "analysis/stats/nodes.h"
#include "analysis/stats/scaling.h"
#include "analysis/table/table.h"
#include "schema/study.h"
#include "specs/link.h"

namespace shardmark {

// What a user adds to the studies.
struct ReportInputs {
  double price_per_gpu_hour = Measures::kNone;
  FailureQuery failures = {};
  std::vector<specs::Link> links = specs::interconnect_links();  // to compare
  References references = {};                                    // of the collection, for these studies
};

// What all parts of a report start from, made once. The studies and references must outlive it.
struct ReportData {
  explicit ReportData(const std::vector<StudyData>& all_studies, const References& references = {});
  ReportData(const ReportData&) = delete;
  ReportData& operator=(const ReportData&) = delete;

  const std::vector<StudyData>& studies;
  const std::vector<MergedPoint> points;
  const std::vector<MergedPoint> unfinished;  // sustained runs that did not come to their end
  const std::vector<ScalingSeries> scaling;   // of the points
  const ReferenceMatches matches;             // of the points
  const std::vector<RatedOperation> rates;    // of the points
  const std::optional<NodesJudged> nodes;     // if a study has tests of nodes
};

// One table after the other; those without rows are left out, and the first one describes the studies. Of
// 100,000 points all tables together need more memory than the studies.
void visit_tables(const ReportData& data, const ReportInputs& inputs,
                  const std::function<void(Table&&)>& visit);
// The names of all tables that a report may have. All collectives have one, which only a study with some of
// them shows.
std::vector<std::string> report_table_names();
std::vector<Table> make_report(const std::vector<StudyData>& studies, const ReportInputs& inputs = {});

}  // namespace shardmark

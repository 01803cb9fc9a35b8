// The report: every table that can be made from one or several studies.
#pragma once

#include <vector>

#include "analysis/table/table.h"
#include "schema/study.h"
#include "specs/link.h"

namespace shardmark {

// What a user adds to the studies.
struct ReportInputs {
  double price_per_gpu_hour = Measures::kNone;
  std::vector<specs::Link> links = specs::interconnect_links();  // to compare
};

// Tables without rows are left out; the first one describes the studies. The studies are merged: see
// merged.h.
std::vector<Table> make_report(const std::vector<StudyData>& studies, const ReportInputs& inputs = {});

}  // namespace shardmark

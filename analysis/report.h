// The report: every table that can be made from one or several studies.
#pragma once

#include <vector>

#include "analysis/table.h"
#include "laws/link.h"
#include "schema/study.h"

namespace shardmark {

// What a user adds to the studies.
struct ReportInputs {
  double price_per_gpu_hour = Measures::kNone;
  std::vector<laws::Link> links = laws::link_laws();  // to compare
};

// Tables without rows are left out; the first one describes the studies. The studies are merged: see
// merged.h.
std::vector<Table> make_report(const std::vector<StudyData>& studies, const ReportInputs& inputs = {});

}  // namespace shardmark

// Files about the verdicts on nodes, for whoever repairs them.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"

namespace shardmark {

// Throws UsageError if one of the files that write_verdicts() would make for this study is there already.
void require_places_of_verdicts(const std::string& study);

// For x.h5, writes the page x.html and the verdicts as test results in JUnit's XML, x.xml; both replace what
// an earlier launch of the study wrote. Says so in one line. A file that cannot be written costs a warning,
// not the verdict. Returns kWrong if a node is out, or if the study
// holds no tests of nodes; else kDone.
int write_verdicts(const std::string& study, const std::vector<StudyData>& studies,
                   const ReportInputs& inputs);

}  // namespace shardmark

// The report in a few sentences: what was measured, what is fastest, how it scales, what to be careful with.
#pragma once

#include <string>
#include <vector>

#include "analysis/scaling.h"

namespace shardmark {

struct Statement {
  std::string about;  // which points: "gpt2, batch 4 per rank, on 2 ranks:"
  std::string text;
};

// scaling: of the points.
std::vector<Statement> summary_of(const std::vector<StudyData>& studies,
                                  const std::vector<MergedPoint>& points,
                                  const std::vector<ScalingSeries>& scaling);

}  // namespace shardmark

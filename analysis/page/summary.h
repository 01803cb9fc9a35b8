// The report in a few sentences: what was measured, what is fastest, how it scales, what to be careful with.
#pragma once

#include <string>
#include <vector>

#include "schema/study.h"

namespace shardmark {

struct Statement {
  std::string about;  // which points: "gpt2, batch 4 per rank, on 2 ranks:"
  std::string text;
};

std::vector<Statement> summary_of(const std::vector<StudyData>& studies);

}  // namespace shardmark

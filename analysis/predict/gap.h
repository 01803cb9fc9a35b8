// Where the time of a measured step goes: computing, waiting for slower ranks, communication; and how much of
// the communication the study's own collectives explain.
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/predictor.h"
#include "analysis/table/table.h"

namespace shardmark {

// Seconds of a step, mean over ranks; of the steps the middle half in length. step_s = compute_s + skew_s +
// communication_s.
struct Gap {
  const MergedPoint* merged = nullptr;
  double step_s = Measures::kNone;
  double compute_s = Measures::kNone;           // the step without its exposed communication
  double skew_s = Measures::kNone;              // exposed beyond that of the rank that waits least
  double communication_s = Measures::kNone;     // exposed on the rank that waits least
  double operations_s = Measures::kNone;        // expected: all operations, one after the other
  double expected_exposed_s = Measures::kNone;  // of them by simulation
  double unexplained_s() const { return communication_s - expected_exposed_s; }
  std::string missing;              // why nothing is expected
  std::vector<std::string> caveat;  // what the expectation was not measured for
};

// For all points with more than one rank whose records hold a program with operations.
std::vector<Gap> gaps(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors);

Table gap_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors);

}  // namespace shardmark

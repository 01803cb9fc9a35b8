// Is this number normal? What a study shows without a baseline: warnings about single points, and
// operations that contradict each other. Rules, thresholds and sources: analysis/README.md.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

struct PointFinding {
  const MergedPoint* about;  // into the points
  std::string kind;          // "warming up", "order of sizes", "efficiency rises" ...
  std::string words;
  bool excludes = false;   // no fit uses the point
  bool is_warning = true;  // else good news, which only the table problems holds
};

// In the order of the points; warnings before contradictions. Oversubscribed points are left to the column of
// warnings. unfinished: sustained runs (sustained.h); the findings point into both.
std::vector<PointFinding> findings_of(const std::vector<MergedPoint>& points,
                                      const std::vector<MergedPoint>& unfinished = {});

// Its part about efficiency over ranks and nodes: above 100 %, or rising with more ranks.
void add_scaling(const std::vector<MergedPoint>& points, std::vector<PointFinding>& findings);

}  // namespace shardmark

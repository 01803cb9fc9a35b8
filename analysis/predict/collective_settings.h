// The collectives of each setting of a report: what was fitted to them, and how well times that were left out
// are predicted by the others.
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/collective_costs.h"
#include "analysis/table/table.h"

namespace shardmark {

struct CollectiveSetting {
  std::string machine, transport;
  std::vector<TimedCollective> times;
};

// One for each machine and transport of the collective points that may be used.
std::vector<CollectiveSetting> collective_settings(const std::vector<MergedPoint>& points);

// One operation on one span: each size but the smallest and the largest, predicted without itself.
struct HeldOutCollective {
  specs::Collective operation = specs::Collective::all_reduce;
  specs::Span span;
  std::vector<double> bytes, errors;  // predicted / measured - 1
};
std::vector<HeldOutCollective> held_out_collectives(const std::vector<TimedCollective>& times);

Table collective_fits_table(const std::vector<CollectiveSetting>& settings);
Table held_out_collectives_table(const std::vector<CollectiveSetting>& settings);

}  // namespace shardmark

#include "analysis/frame/phase_traffic.h"

#include "analysis/table/cells.h"

namespace shardmark {

ColumnsOf<strategies::StepTraffic> phase_traffic_columns() {
  using strategies::StepTraffic;
  ColumnsOf<StepTraffic> columns;
  const auto add = [&](const char* name, strategies::PhaseTraffic StepTraffic::*phase) {
    const auto unless_unknown = [](const StepTraffic& traffic, const Cell& cell) {
      return traffic == StepTraffic{} ? cells::words("") : cell;
    };
    columns.push_back({{"operations", "", true, true, name},
                       [=](const StepTraffic& traffic) {
                         return unless_unknown(traffic, cells::count((traffic.*phase).num_operations));
                       },
                       "collectives that a rank starts in the phase; of a measured step as rank 0 recorded "
                       "them. backward: until the update begins, including the rest of the gradients; "
                       "update: including the all-reduce for the gradient norm and the distribution of "
                       "updated parameters."});
    columns.push_back({{"traffic", "MB", true, true, name},
                       [=](const StepTraffic& traffic) {
                         return unless_unknown(traffic, cells::number((traffic.*phase).bytes / 1e6));
                       },
                       "payload x ring factor of these operations, MB = 10^6 bytes."});
  };
  add("forward", &StepTraffic::forward);
  add("backward", &StepTraffic::backward);
  add("update", &StepTraffic::update);
  return columns;
}

}  // namespace shardmark

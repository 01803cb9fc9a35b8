// See sharded_cost.h for the sums.
#include "laws/sharded_cost.h"

#include <algorithm>

namespace shardmark::laws {
namespace {

// An even group moves in one operation; whole tensors move in one operation per rank that owns some of the
// group.
int64_t num_moves(const GroupLayout& place) {
  if (place.even) return 1;
  return std::count_if(place.owned.begin(), place.owned.end(),
                       [](const Range& range) { return range.numel > 0; });
}

}  // namespace

double gradient_slot_bytes(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const int64_t each = input.bytes.compute + (input.bytes.converts() ? input.bytes.reduce : 0);
  return static_cast<double>(
      each * (kGradientSlots * largest_group(input.model, layout) + root_numel(input.model, layout)));
}

Cost sharded_cost(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const double share = static_cast<double>(largest_share(layout) * input.bytes.master);
  const auto slots = input.options.at("prefetch").get<int64_t>() + 1;
  const auto state = static_cast<double>(input.optimizer_elements);

  Cost cost;
  cost.parameter_bytes = cost.gradient_bytes = share;
  cost.optimizer_bytes = share * state;
  cost.ideal_bytes = static_cast<double>(total_numel(layout) * input.bytes.master) /
                     static_cast<double>(input.ranks) * (2 + state);
  cost.transient_bytes =
      gradient_slot_bytes(input, layout) +
      static_cast<double>(input.bytes.compute *
                          (slots * largest_group(input.model, layout) + root_numel(input.model, layout)));

  int64_t last_unit = -1;  // the group that forward uses last stays for backward
  for (size_t g = 0; g < layout.size(); ++g)
    if (!is_root(input.model.groups[g])) last_unit = static_cast<int64_t>(g);
  double moved_bytes = 0;
  int64_t operations = 0;
  for (size_t g = 0; g < layout.size(); ++g) {
    const bool kept = is_root(input.model.groups[g]) || static_cast<int64_t>(g) == last_unit;
    const int64_t gathers = kept ? 1 : 2;
    moved_bytes +=
        static_cast<double>((gathers * input.bytes.compute + input.bytes.reduce) * layout[g].numel);
    operations += (gathers + 1) * num_moves(layout[g]);
  }
  cost.traffic_bytes = static_cast<double>(input.accumulation) * moved_bytes *
                       ring_factor(layout.front().even ? "all_gather" : "broadcast", input.ranks);
  cost.num_operations = input.accumulation * operations;
  return cost;
}

}  // namespace shardmark::laws

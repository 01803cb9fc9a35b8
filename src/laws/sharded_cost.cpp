// See sharded_cost.h for the sums.
#include "laws/sharded_cost.h"

namespace shardmark::laws {

double gradient_slot_bytes(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const int64_t each = input.bytes.compute + (input.bytes.converts() ? input.bytes.reduce : 0);
  return static_cast<double>(
      each * (kGradientSlots * largest_group(input.model, layout) + root_numel(input.model, layout)));
}

OptionSpec offload_option() {
  return {"offload",
          OptionType::text,
          "none",
          "what lives in host memory instead of the device's",
          {"none", "optimizer"}};
}

void add_optimizer(Cost& cost, const CostInput& input, double parameters) {
  const double each = parameters * static_cast<double>(input.bytes.master);
  if (offloads(input.options))
    cost.offloaded_bytes = each * static_cast<double>(2 + input.optimizer_elements);
  else
    cost.optimizer_bytes = each * static_cast<double>(input.optimizer_elements);
}

Cost sharded_cost(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const auto share = static_cast<double>(largest_share(layout));
  const auto slots = input.options.at("prefetch").get<int64_t>() + 1;

  Cost cost;
  cost.parameter_bytes = cost.gradient_bytes = share * static_cast<double>(input.bytes.master);
  add_optimizer(cost, input, share);
  cost.ideal_bytes = (cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes) *
                     static_cast<double>(total_numel(layout)) / static_cast<double>(input.ranks) / share;
  cost.transient_bytes =
      gradient_slot_bytes(input, layout) +
      static_cast<double>(input.bytes.compute *
                          (slots * largest_group(input.model, layout) + root_numel(input.model, layout)));
  return cost;
}

}  // namespace shardmark::laws

// Evaluates the papers' formulas with the sizes of the model's table.
#include "strategies/paper.h"

#include <algorithm>
#include <numeric>

namespace shardmark::strategies {
namespace {

int64_t num_slots(const Options& options) { return options.at("prefetch").get<int64_t>() + 1; }

}  // namespace

Sizes::Sizes(const StepInput& input, const ModelTable& table)
    : model(table),
      ranks(double(input.ranks)),
      micro_batches(double(input.accumulation)),
      compute(double(input.bytes.compute)),
      master(double(input.bytes.master)),
      reduce(double(input.bytes.reduce)),
      copy(input.bytes.mixed() ? compute : 0),
      converted(input.bytes.converts() ? reduce : 0),
      state(master * double(input.optimizer_elements)),
      parameters(double(table.num_parameters())) {
  for (const specs::GroupSpec& group : table.groups) {
    if (specs::is_root(group))
      roots += double(group.numel());
    else
      units.push_back(double(group.numel()));
    for (const specs::ParameterSpec& parameter : group.parameters)
      largest_tensor = std::max(largest_tensor, double(parameter.numel()));
  }
}

double Sizes::largest_unit() const {
  return units.empty() ? 0 : *std::max_element(units.begin(), units.end());
}

double Sizes::first_units(int64_t count) const {
  return std::accumulate(units.begin(), units.begin() + std::min(count, std::ssize(units)), 0.0);
}

double Sizes::last_units(int64_t count) const {
  return std::accumulate(units.end() - std::min(count, std::ssize(units)), units.end(), 0.0);
}

Cost replica_cost(const Sizes& s, bool one_pass) {
  Cost cost;
  cost.parameter_bytes = s.parameters * (s.master + s.copy);
  cost.gradient_bytes = s.parameters * (one_pass ? s.copy : s.master + s.copy);
  cost.optimizer_bytes = s.parameters * s.state;
  return cost;
}

Cost sharded_cost(const Sizes& s, double parts, const Options& options) {
  Cost cost;
  cost.parameter_bytes = s.parameters / parts * s.master;
  cost.gradient_bytes = s.parameters / parts * s.master;
  add_optimizer_state(cost, s, parts, options);
  cost.transient_bytes =
      (double(num_slots(options)) * s.largest_unit() + s.roots) * s.compute + gradient_slot_bytes(s);
  return cost;
}

double gradient_slot_bytes(const Sizes& s) {
  return (2 * s.largest_unit() + s.roots) * (s.compute + s.converted);
}

double gathered_forward(const Sizes& s, const Options& options) {
  const double all = s.first_units(std::ssize(s.units));
  return s.micro_batches * all - (s.micro_batches - 1) * s.first_units(num_slots(options));
}

double gathered_backward(const Sizes& s, const Options& options) {
  return s.micro_batches * (s.first_units(std::ssize(s.units)) - s.last_units(num_slots(options)));
}

void add_optimizer_state(Cost& cost, const Sizes& s, double parts, const Options& options) {
  const double owned = s.parameters / parts;
  if (options.at("offload") == "optimizer")
    cost.offloaded_bytes = owned * (s.state + 2 * s.master);
  else
    cost.optimizer_bytes = owned * s.state;
}

}  // namespace shardmark::strategies

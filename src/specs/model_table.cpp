// Sums over a model's table.
#include "specs/model_table.h"

#include <cmath>
#include <functional>
#include <numeric>

namespace shardmark::specs {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<int64_t> ParameterSpec::whole_shape() const {
  std::vector<int64_t> whole = shape;
  if (part) whole[static_cast<size_t>(part->dim)] = part->whole;
  return whole;
}

int64_t ParameterSpec::numel() const { return product(shape); }

int64_t BlockSpec::input_elements() const { return input_shape.empty() ? 0 : product(input_shape); }
int64_t BlockSpec::output_elements() const { return output_shape.empty() ? 0 : product(output_shape); }

int64_t GroupSpec::numel() const {
  int64_t sum = 0;
  for (const auto& parameter : parameters) sum += parameter.numel();
  return sum;
}

int64_t ModelTable::num_parameters() const {
  int64_t sum = 0;
  for (const auto& group : groups) sum += group.numel();
  return sum;
}

int64_t ModelTable::num_active_parameters() const {
  double sum = 0;
  for (const auto& group : groups)
    for (const auto& parameter : group.parameters)
      sum += parameter.active * static_cast<double>(parameter.numel());
  return std::llround(sum);
}

double ModelTable::step_flops() const {
  double forward = 0;
  for (const auto& block : blocks) forward += block.forward_flops;
  return 3 * forward;
}

double ModelTable::attention_share() const {
  double attention = 0;
  for (const auto& block : blocks) attention += block.attention_flops;
  return 3 * attention / step_flops();
}

}  // namespace shardmark::specs

// Adds up the rows of a model's table.
#include "specs/model_table.h"

#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "specs/stages.h"

namespace shardmark::specs {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

SharedTable model_table(const Choice& model) {
  constexpr size_t kMost = 64;
  static std::mutex mutex;
  static std::map<std::string, SharedTable> kept;
  const std::string name = to_text(model);
  const std::scoped_lock lock(mutex);
  if (const auto found = kept.find(name); found != kept.end()) return found->second;
  const ModelTable whole = model_spec(model.name).table(model.options);
  const auto blocks = std::ssize(whole.blocks);
  const SharedTable made = stage_table(whole, {}, {0, blocks}, {0}).table;  // blocks know their input
  if (kept.size() > kMost) kept.clear();
  return kept[name] = made;
}

std::vector<int64_t> ParameterSpec::whole_shape() const {
  std::vector<int64_t> whole = shape;
  if (shard) whole[static_cast<size_t>(shard->dim)] = shard->whole;
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

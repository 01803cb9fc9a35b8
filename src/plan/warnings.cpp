// Warnings about a point. They use the values of the point alone, because a suite is read before the number
// of ranks is known.
#include "plan/warnings.h"

#include <fmt/format.h>

#include "strategies/strategy.h"

namespace shardmark {
namespace {

// The running sum of 8 equal terms is 8 times as large as a term, so a term loses its last 3 bits, and bf16
// has only 8. Megatron-LM adds the gradients of micro-batches in fp32 (accumulate_allreduce_grads_in_fp32).
constexpr int64_t kManyMicroBatches = 8;

std::string warning_of_sums(const TrainingPoint& t) {
  if (t.accumulation < kManyMicroBatches || !adds_in_16_bits(t)) return {};
  return fmt::format(
      "gradients of {} micro-batches are added in {}, which rounds every sum to {} significant bits; take "
      "reduce_dtype fp32 to add them in fp32, as Megatron-LM does",
      t.accumulation, t.precision, t.precision == "bf16" ? 8 : 11);
}

}  // namespace

// ddp and ZeRO-1 hold a whole gradient, to which backward adds, and reduce it once per step. All other
// strategies reduce the gradient of every micro-batch and add up the shard that a rank owns. `single` reduces
// nothing.
bool adds_as_reduced(const TrainingPoint& t) {
  if (t.accumulation == 1) return false;
  const OptionValue* const shard = t.strategy.options.find("shard");
  return t.strategy.name == "ddp" || (t.strategy.name == "fsdp" && shard != nullptr && *shard == "optimizer");
}

bool adds_in_16_bits(const TrainingPoint& t) {
  const bool is_16_bits = t.precision == "bf16" || t.precision == "fp16";
  return is_16_bits && t.reduce_dtype == "same" && adds_as_reduced(t);
}

std::vector<std::string> warnings_of(const Point& point) {
  std::vector<std::string> warnings;
  for (std::string text : {strategies::layout_warning(point), warning_of_sums(point.training)})
    if (!text.empty()) warnings.push_back(std::move(text));
  return warnings;
}

}  // namespace shardmark

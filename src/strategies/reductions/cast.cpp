// cast: each bucket is all-reduced in a 16-bit type, which is half the bytes of fp32. The transport adds
// 16-bit types in float and rounds once. In fp16 a sum beyond 65504 is infinite.
#include "strategies/reductions/reduction.h"

namespace shardmark::strategies::cast_16_bits {
namespace {

void plan(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options& options) {
  const Element element = options.at("to") == "fp16" ? Element::fp16 : Element::bf16;
  for (ReducedBucket& bucket : buckets) {
    const Slice message = step.allocate("message", Use::transient, element, bucket.memory.gradients.numel);
    bucket.memory.scratch = {message};
    bucket.memory.value_bytes = step.bytes_of(message);
    bucket.calls = {step.call(Collective::all_reduce, message, message)};
  }
}

void paper(Cost& cost, const Sizes& s, const Options&) {
  constexpr double kBytes = 2;
  cost.transient_bytes = s.parameters * kBytes;
  cost.traffic_bytes = 2 * ring(s.ranks) * s.parameters * kBytes;
}

const OptionTable kOptions = {
    {"to", OptionType::text, "bf16", "type in which gradients are sent", {"bf16", "fp16"}}};

const Registration<Reduction> registered{"cast", {"all-reduced in a 16-bit type", kOptions, plan, paper}};

}  // namespace
}  // namespace shardmark::strategies::cast_16_bits

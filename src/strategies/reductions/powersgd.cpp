// powersgd: each gradient matrix M (plus the residual of earlier steps) is sent as a product P Q' of two
// narrow factors. P is an orthonormal basis of M Q, with the Q of the previous step, and the new Q is M' P.
// Both products are summed over ranks. What P Q' does not capture is kept as the residual for the next step
// (error feedback). Source: Vogels et al., NeurIPS 2019, algorithms 1 and 2.
#include "strategies/reductions/reduction.h"

namespace shardmark::strategies::powersgd {
namespace {

LowRankBucket factors_of(const StepBuilder& step, const BucketMemory& bucket, const Options& options) {
  return low_rank(step.input().model, step.layout(), bucket.bucket, options.at("rank").get<int64_t>());
}

// The first message has the left factors, followed by the parameters that are sent as they are. The second
// message has the right factors, which stay in memory, because the next step starts from them.
void plan(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options& options) {
  for (ReducedBucket& bucket : buckets) {
    const LowRankBucket factors = factors_of(step, bucket.memory, options);
    const Slice residual =
        step.allocate("residual", Use::gradients, Element::reduce, bucket.memory.gradients.numel);
    const Slice left = step.allocate("left factors", Use::transient, Element::reduce, factors.left_numel);
    const Slice right = step.allocate("right factors", Use::gradients, Element::reduce, factors.right_numel);
    step.carried(residual);
    step.carried(right);
    step.replicated(right);
    bucket.memory.scratch = {residual, left, right};
    bucket.memory.value_bytes = step.bytes_of(left) + step.bytes_of(right);
    bucket.calls = {step.call(Collective::all_reduce, left, left)};
    if (factors.right_numel > 0) bucket.calls.push_back(step.call(Collective::all_reduce, right, right));
  }
}

// A matrix of m x n is sent as r (m + n) elements if that is less than m n. The residual and the right
// factors stay in memory.
void paper(Cost& cost, const Sizes& s, const Options& options) {
  const auto rank = options.at("rank").get<double>();
  double left = 0, right = 0;
  for (const specs::GroupSpec& group : s.model.groups)
    for (const specs::ParameterSpec& parameter : group.parameters) {
      const auto rows = static_cast<double>(parameter.shape.front()),
                 numel = static_cast<double>(parameter.numel());
      const bool is_small = rank * (rows + numel / rows) >= numel;
      left += is_small ? numel : rank * rows;
      right += is_small ? 0 : rank * numel / rows;
    }
  cost.gradient_bytes += (s.parameters + right) * s.reduce;
  cost.transient_bytes = left * s.reduce;
  cost.traffic_bytes = 2 * ring(s.ranks) * (left + right) * s.reduce;
}

const OptionTable kOptions = {{"rank", OptionType::integer, 2, "columns of each factor", {}, 1, 1024}};

const Registration<Reduction> registered{
    "powersgd",
    {"matrices as products of two narrow ones, the rest kept for the next step", kOptions, plan, paper,
     /*lossy=*/true, /*keeps_residual=*/true}};

}  // namespace
}  // namespace shardmark::strategies::powersgd

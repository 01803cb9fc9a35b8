// plain: one all-reduce per bucket, in place and in the type of the gradients.
#include "strategies/reductions/reduction.h"

namespace shardmark::strategies::all_reduce {
namespace {

void plan(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options&) {
  for (ReducedBucket& bucket : buckets) {
    const Slice& gradients = bucket.memory.gradients;
    if (!bucket.memory.bucket.of_experts || bucket.process_group.ranks > 1)
      bucket.calls = {step.call(Collective::all_reduce, gradients, gradients, bucket.process_group)};
    bucket.memory.value_bytes = step.bytes_of(bucket.memory.gradients);
  }
}

void paper(Cost& cost, const Sizes& s, const Options&) {
  cost.traffic_bytes = 2 * ring(s.ranks) * s.parameters * s.reduce;
}

const Registration<Reduction> registered{"plain",
                                         {"all-reduced as they are", {}, plan, paper, /*lossy=*/false}};

}  // namespace
}  // namespace shardmark::strategies::all_reduce

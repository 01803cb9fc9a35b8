// int8: an all-reduce of 8-bit integers. A block of elements is sent as integers from -127 to 127 with a
// common scale. Every rank sends each part of its bucket to the rank that sums that part (all-to-all), and
// the sums go to all ranks in the same form (all-gather). Values are therefore rounded twice, and no residual
// is kept. Sources: Alistarh et al. (QSGD), NeurIPS 2017, for scales per block; Wang et al. (ZeRO++), 2023,
// for the all-to-all instead of a reduction.
#include <algorithm>

#include "strategies/reductions/reduction.h"

namespace shardmark::strategies::int8 {
namespace {

// "messages to all" holds what this rank sends to each rank, and later the sums of all parts. "messages of
// all" holds what each rank has sent to this one.
void plan(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options&) {
  const int64_t ranks = step.input().ranks;
  int64_t largest = 0;
  for (const ReducedBucket& bucket : buckets)
    largest = std::max(largest, quantised_parts(bucket.memory.gradients.numel, ranks).numel);
  const Slice sum = step.allocate("sum of a part", Use::transient, Element::fp32, largest);
  const Slice summand = step.allocate("summand", Use::transient, Element::fp32, largest);
  for (ReducedBucket& bucket : buckets) {
    const QuantisedParts parts = quantised_parts(bucket.memory.gradients.numel, ranks);
    const int64_t words = parts.bytes / 4;
    const Slice mine = step.allocate("messages to all", Use::transient, Element::int32, ranks * words);
    const Slice theirs = step.allocate("messages of all", Use::transient, Element::int32, ranks * words);
    bucket.memory.scratch = {mine, theirs, sum.first(parts.numel), summand.first(parts.numel)};
    bucket.memory.value_bytes = static_cast<double>(bucket.memory.gradients.numel);
    const int64_t own = step.all().index_of(step.input().rank);
    bucket.calls = {step.call(Collective::all_to_all, theirs, mine),
                    step.call(Collective::all_gather, mine, mine.part({own * words, words}))};
  }
}

// Each element is a byte, and each block has a scale. Both travel to the rank that sums them and back to all.
void paper(Cost& cost, const Sizes& s, const Options&) {
  const double bytes = s.parameters * (1 + static_cast<double>(kScaleBytes) / kQuantisedBlock);
  cost.transient_bytes = kNoFormula;
  cost.traffic_bytes = 2 * ring(s.ranks) * bytes;
}

const Registration<Reduction> registered{"int8",
                                         {"8-bit numbers with a scale per block, exchanged twice",
                                          {},
                                          plan,
                                          paper,
                                          /*lossy=*/true,
                                          /*keeps_residual=*/false,
                                          /*most_element_bytes=*/4,
                                          /*couples_elements=*/true}};

}  // namespace
}  // namespace shardmark::strategies::int8

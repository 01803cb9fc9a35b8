// topk: every rank sends the largest elements of its gradient (plus the residual of earlier steps) as values
// and 32-bit indices, and adds up the messages of all ranks in rank order. What was not sent is the residual
// for the next step. Sources: Aji and Heafield, EMNLP 2017; Stich et al., NeurIPS 2018 (error feedback).
#include <algorithm>

#include "strategies/reductions/reduction.h"

namespace shardmark::strategies::topk {
namespace {

int64_t selected(const BucketMemory& bucket, const Options& options) {
  return num_selected(bucket.gradients.numel, options.at("ratio").get<double>());
}

// The buffers for magnitudes, for the largest of them and for their indices are shared: only one bucket at a
// time is being selected from.
void plan(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options& options) {
  int64_t most = 0, largest = 0;
  for (const ReducedBucket& bucket : buckets) {
    most = std::max(most, selected(bucket.memory, options));
    largest = std::max(largest, bucket.memory.gradients.numel);
  }
  const Slice magnitudes = step.allocate("magnitudes", Use::transient, Element::reduce, largest);
  const Slice values = step.allocate("largest magnitudes", Use::transient, Element::reduce, most);
  const Slice places = step.allocate("their places", Use::transient, Element::int64, most);
  for (ReducedBucket& bucket : buckets) {
    const int64_t numel = bucket.memory.gradients.numel, k = selected(bucket.memory, options);
    const int64_t words = k * step.input().bytes.reduce / 4 + k;
    const Slice residual = step.allocate("residual", Use::gradients, Element::reduce, numel);
    step.carried(residual);
    const Slice messages =
        step.allocate("messages", Use::transient, Element::int32, step.input().ranks * words);
    bucket.memory.scratch = {residual, messages, magnitudes.first(numel), values.first(k), places.first(k)};
    bucket.memory.value_bytes = static_cast<double>(k * step.input().bytes.reduce);
    bucket.calls = {step.call(Collective::all_gather, messages,
                              messages.part({step.all().index_of(step.input().rank) * words, words}))};
  }
}

// Every rank's values and 32-bit indices reach all other ranks. The residual is as large as the gradients.
void paper(Cost& cost, const Sizes& s, const Options& options) {
  const double bytes = options.at("ratio").get<double>() * s.parameters * (s.reduce + 4);
  cost.gradient_bytes += s.parameters * s.reduce;
  cost.transient_bytes = kNoFormula;
  cost.traffic_bytes = (s.ranks - 1) * bytes;
}

const OptionTable kOptions = {
    {"ratio", OptionType::number, 0.01, "part of a bucket's elements that a rank sends", {}, 1e-6, 1}};

const Registration<Reduction> registered{
    "topk",
    {"largest elements all-gathered, the rest kept for the next step", kOptions, plan, paper,
     /*lossy=*/true, /*keeps_residual=*/true, /*most_element_bytes=*/8, /*couples_elements=*/true}};

}  // namespace
}  // namespace shardmark::strategies::topk

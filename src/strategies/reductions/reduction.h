// A reduction says how ddp sums the gradients of a bucket over ranks: which memory it needs and which calls
// it makes. What happens to a bucket before, between and after these calls is in
// src/executor/reductions/<name>.cpp. All ranks must end with the same bits.
#pragma once

#include "strategies/paper.h"
#include "strategies/step_builder.h"

namespace shardmark::strategies {

// A bucket goes through `pack` and its first call as soon as its gradients are complete. When backward is
// over, it goes through `combine` and its second call, if it has one, and then through `unpack`.
struct ReducedBucket {
  // Gradients are set; the reduction adds the scratch memory that it needs.
  BucketMemory memory;
  std::vector<CollectiveCall> calls;                          // one or two, over all ranks
  bool is_packed() const { return !memory.scratch.empty(); }  // into scratch memory
};

struct Reduction {
  std::string description;
  OptionTable options;
  void (*plan)(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options& options);
  // Adds the reduction's own costs to those of the replica (strategies/paper.h): traffic, and memory that it
  // keeps.
  void (*paper)(Cost& cost, const Sizes& s, const Options& options);
  bool lossy = true;
  bool keeps_residual = false;     // has error feedback: what was not sent is added to the next gradient
  int64_t most_element_bytes = 8;  // of the widest gradients that it can reduce
  // The result for one element depends on the other elements of its bucket.
  bool couples_elements = false;
};

inline const Reduction& reduction(const std::string& name) {
  return Registry<Reduction>::instance().get(name, "reduction");
}
const ChoiceKind& reduction_kind();
// The option `reduction` of ddp as a choice; resolve() leaves it as text.
Choice reduction_of(const Options& ddp_options);

}  // namespace shardmark::strategies

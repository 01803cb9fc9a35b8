// How ddp makes the gradients of its buckets those of all ranks together: the memory that it needs and the
// calls that it makes. What happens to a bucket before, between and after its calls is done by
// src/executor/reductions/<name>.cpp. Every rank must end with the same bits.
#pragma once

#include "strategies/paper.h"
#include "strategies/step_builder.h"

namespace shardmark::strategies {

// A bucket goes through `pack` and its first call as soon as its gradients are complete; through `combine`
// and its second call, where it has one, and through `unpack`, when backward is over.
struct ReducedBucket {
  BucketMemory memory;                // its gradients are there; the reduction adds what it needs
  std::vector<CollectiveCall> calls;  // one or two, over all ranks
  bool is_packed() const { return !memory.scratch.empty(); }  // into it
};

struct Reduction {
  std::string description;
  OptionTable options;
  void (*plan)(StepBuilder& step, std::vector<ReducedBucket>& buckets, const Options& options);
  // Adds what it costs beside the replica (strategies/paper.h): its traffic, and the memory that it keeps.
  void (*paper)(Cost& cost, const Sizes& s, const Options& options);
  bool lossy = true;
  bool keeps_residual = false;     // error feedback: what was not sent is added to the next gradient
  int64_t most_element_bytes = 8;  // of gradients that it can reduce
  bool couples_elements = false;   // what becomes of one depends on the others of its bucket
};

inline const Reduction& reduction(const std::string& name) {
  return Registry<Reduction>::instance().get(name, "reduction");
}
const ChoiceKind& reduction_kind();
// The option `reduction` of ddp, which is a text after resolve().
Choice reduction_of(const Options& ddp_options);

}  // namespace shardmark::strategies

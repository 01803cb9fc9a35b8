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
  std::vector<CollectiveCall> calls = {};                     // one or two; none over a single rank
  ProcessGroup process_group = {};                            // the ranks that have the same parameters
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

// The sizes of compressed buckets, which the program and the kernels of a reduction must agree on.

// Top-k: the number of elements of a bucket that a rank sends. It is even, so that messages stay aligned.
int64_t num_selected(int64_t numel, double ratio);

// int8: a bucket is divided into equal parts, one for each rank, which consist of whole blocks. Each block
// has its own scale.
inline constexpr int64_t kQuantisedBlock = 256;  // elements
inline constexpr int64_t kScaleBytes = 4;
struct QuantisedParts {
  int64_t numel;  // elements of a part
  int64_t bytes;  // of a part's message: scales and 8-bit values
};
QuantisedParts quantised_parts(int64_t numel, int64_t ranks);

// powersgd: a parameter is seen as a matrix whose rows are its first dimension. It is sent as two factors of
// this rank if these are smaller than the matrix. All other parameters (vectors, narrow matrices) are sent as
// they are.
struct LowRankMatrix {
  std::string name;  // of the parameter
  int64_t begin;     // in the bucket
  int64_t rows, columns, rank;
};
struct LowRankBucket {
  std::vector<LowRankMatrix> matrices;
  std::vector<specs::Range> others;  // in the bucket
  // Elements of the left factors [rows, rank], followed by the other parameters.
  int64_t left_numel = 0;
  int64_t right_numel = 0;  // elements of the right factors [columns, rank]
};
LowRankBucket low_rank(const ModelTable& model, const std::vector<GroupLayout>& layout,
                       const specs::Bucket& bucket, int64_t rank);

}  // namespace shardmark::strategies

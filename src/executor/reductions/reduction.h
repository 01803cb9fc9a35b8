// What happens to a bucket of gradients before, between and after its calls; memory and calls are those of
// src/strategies/reductions/<name>.cpp.
#pragma once

#include "executor/memory.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {

struct ReducedTensors {
  specs::Bucket bucket;
  at::Tensor gradients;                       // [numel]
  std::map<std::string, at::Tensor> scratch;  // by the names of the buffers that the reduction's `plan` took
};

struct KernelContext {
  int64_t rank, ranks;
  const specs::ModelTable& model;
  const std::vector<specs::GroupLayout>& layout;
  std::vector<ReducedTensors> buckets;
  Options options;  // of the reduction, resolved
  int64_t seed;
};

// pack, combine and unpack must not allocate: a rank that failed alone in it would leave the others waiting.
class ReductionKernels {
 public:
  virtual ~ReductionKernels() = default;
  virtual void pack(size_t bucket) = 0;
  virtual void combine(size_t bucket) { static_cast<void>(bucket); }
  virtual void unpack(size_t bucket) = 0;
};

// Registered by src/executor/reductions/<name>.cpp; a reduction that only calls has none.
struct KernelsEntry {
  std::string description;
  std::unique_ptr<ReductionKernels> (*make)(const KernelContext& context);
};

// nullptr where the program has no reduction with kernels.
std::unique_ptr<ReductionKernels> make_kernels(const strategies::Program& program, const Model& model,
                                               const ProgramMemory& memory, const Communicator& comm,
                                               int64_t seed);

}  // namespace shardmark

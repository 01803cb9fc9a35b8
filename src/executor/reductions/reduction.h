// What happens to a bucket of gradients before, between and after its calls. The calls and their memory are
// planned by src/strategies/reductions/<name>.cpp.
#pragma once

#include "executor/memory.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {

struct ReducedTensors {
  specs::Bucket bucket;
  at::Tensor gradients;                       // [numel]
  std::map<std::string, at::Tensor> scratch;  // by the buffer names of the reduction's `plan`
};

struct KernelContext {
  int64_t rank, ranks;
  const specs::ModelTable& model;
  const std::vector<specs::GroupLayout>& layout;
  std::vector<ReducedTensors> buckets;
  Options options;  // of the reduction, resolved
  int64_t seed;
};

// pack, combine and unpack must not allocate. A rank on which an allocation failed would leave the others
// waiting.
class ReductionKernels {
 public:
  virtual ~ReductionKernels() = default;
  virtual void pack(size_t bucket) = 0;
  virtual void combine(size_t bucket) { static_cast<void>(bucket); }
  virtual void unpack(size_t bucket) = 0;
};

// Registered by src/executor/reductions/<name>.cpp. A reduction that consists of calls alone has none.
struct KernelsEntry {
  std::string description;
  std::unique_ptr<ReductionKernels> (*make)(const KernelContext& context);
};

// Returns nullptr if the program has no reduction with kernels.
std::unique_ptr<ReductionKernels> make_kernels(const strategies::Program& program, const Model& model,
                                               const ProgramMemory& memory, const Communicator& comm,
                                               int64_t seed);

}  // namespace shardmark

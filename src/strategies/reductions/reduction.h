// How ddp makes the gradients of its buckets those of all ranks together. Every rank must end with the same
// bits, because replicas are never compared again.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "laws/layout.h"

namespace shardmark {

// Values live as long as the reduction.
struct ReductionContext {
  Communicator& comm;
  const laws::ModelTable& model;
  const std::vector<laws::GroupLayout>& layout;
  std::vector<laws::Bucket> buckets;
  std::vector<at::Tensor> gradients;  // [bucket]: [numel], a stretch of flat memory
  Options options;                    // of the reduction, resolved
  int64_t seed;
};

class Reduction {
 public:
  virtual ~Reduction() = default;
  // During backward, bucket by bucket in order: its gradients are complete on this rank.
  virtual void start(size_t bucket) = 0;
  // After backward: then all gradients hold their sum over ranks, or what the reduction makes of it.
  virtual void finish() = 0;
  virtual bool lossy() const { return true; }
  // [bucket]: what error feedback keeps for the next step; for checks.
  virtual std::vector<at::Tensor> residuals() const { return {}; }
};

// Registered by src/strategies/reductions/<name>.cpp; its options and costs by
// src/laws/reductions/<name>.cpp. `make` allocates all that a step needs.
struct ReductionEntry {
  std::string description;
  std::unique_ptr<Reduction> (*make)(const ReductionContext& context);
};

inline std::unique_ptr<Reduction> make_reduction(const std::string& name, const ReductionContext& context) {
  return Registry<ReductionEntry>::instance().get(name, "reduction").make(context);
}

}  // namespace shardmark

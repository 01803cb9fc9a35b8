// cast: to 16 bits and back.
#include "executor/reductions/reduction.h"

namespace shardmark {
namespace {

class Cast final : public ReductionKernels {
 public:
  explicit Cast(KernelContext context) : buckets_(std::move(context.buckets)) {}
  void pack(size_t bucket) override { buckets_[bucket].scratch[0].copy_(buckets_[bucket].gradients); }
  void unpack(size_t bucket) override { buckets_[bucket].gradients.copy_(buckets_[bucket].scratch[0]); }

 private:
  std::vector<ReducedTensors> buckets_;
};

const Registration<KernelsEntry> registered{
    "cast", {"to 16 bits and back", [](KernelContext context) -> std::unique_ptr<ReductionKernels> {
               return std::make_unique<Cast>(std::move(context));
             }}};

}  // namespace
}  // namespace shardmark

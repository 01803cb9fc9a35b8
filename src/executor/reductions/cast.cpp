// cast: converts gradients to 16 bits before the call, and back after it.
#include "executor/reductions/reduction.h"

namespace shardmark::cast_16_bits {
namespace {

class Cast final : public ReductionKernels {
 public:
  explicit Cast(const KernelContext& context) {
    for (const ReducedTensors& bucket : context.buckets)
      buckets_.push_back({bucket.gradients, bucket.scratch.at("message")});
  }
  void pack(size_t bucket) override { buckets_[bucket].message.copy_(buckets_[bucket].gradients); }
  void unpack(size_t bucket) override { buckets_[bucket].gradients.copy_(buckets_[bucket].message); }

 private:
  struct BucketTensors {
    at::Tensor gradients, message;
  };
  std::vector<BucketTensors> buckets_;
};

const Registration<KernelsEntry> registered{
    "cast", {"to 16 bits and back", [](const KernelContext& context) -> std::unique_ptr<ReductionKernels> {
               return std::make_unique<Cast>(context);
             }}};

}  // namespace
}  // namespace shardmark::cast_16_bits

// topk: selects and packs the largest elements, and adds up the messages of all ranks in rank order.
#include <ATen/ops/abs.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/topk.h>

#include "executor/reductions/reduction.h"

namespace shardmark::topk {
namespace {

// The message of one rank, in 32-bit words: k values, then k indices.
struct Message {
  at::Tensor values;   // [k]
  at::Tensor indices;  // [k], int32
};

Message view_message(const at::Tensor& words, int64_t k, at::ScalarType dtype) {
  const int64_t num_value_words = words.numel() - k;
  return {words.narrow(0, 0, num_value_words).view(dtype), words.narrow(0, num_value_words, k)};
}

class TopK final : public ReductionKernels {
 public:
  explicit TopK(const KernelContext& context) : rank_(context.rank), ranks_(context.ranks) {
    for (const ReducedTensors& bucket : context.buckets)
      buckets_.push_back({bucket.gradients, bucket.scratch.at("residual"), bucket.scratch.at("messages"),
                          bucket.scratch.at("magnitudes"), bucket.scratch.at("largest magnitudes"),
                          bucket.scratch.at("their places")});
  }

  // The residual takes the gradient in. The largest elements of the residual go into the message, and are
  // zeroed in the residual.
  void pack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    const int64_t k = bucket.where.numel();
    bucket.residual.add_(bucket.gradients);
    at::abs_out(bucket.magnitudes, bucket.residual);
    at::topk_out(bucket.largest, bucket.where, bucket.magnitudes, k, /*dim=*/0, /*largest=*/true,
                 /*sorted=*/false);
    Message message = message_of(bucket, rank_);
    at::index_select_out(message.values, bucket.residual, 0, bucket.where);
    message.indices.copy_(bucket.where);
    bucket.residual.index_fill_(0, bucket.where, 0);
  }

  void unpack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    bucket.gradients.zero_();
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const Message message = message_of(bucket, rank);
      bucket.gradients.index_add_(0, message.indices, message.values);
    }
  }

 private:
  struct BucketTensors {
    at::Tensor gradients;                   // [numel]
    at::Tensor residual;                    // [numel]: not sent yet
    at::Tensor words;                       // the messages of all ranks
    at::Tensor magnitudes, largest, where;  // [numel], [k], [k]
  };

  Message message_of(const BucketTensors& bucket, int64_t rank) const {
    const int64_t num_words = bucket.words.numel() / ranks_;
    return view_message(bucket.words.narrow(0, rank * num_words, num_words), bucket.where.numel(),
                        bucket.gradients.scalar_type());
  }

  int64_t rank_, ranks_;
  std::vector<BucketTensors> buckets_;
};

const Registration<KernelsEntry> registered{
    "topk", {"largest elements", [](const KernelContext& context) -> std::unique_ptr<ReductionKernels> {
               return std::make_unique<TopK>(context);
             }}};

}  // namespace
}  // namespace shardmark::topk

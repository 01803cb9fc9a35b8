// int8: quantizes the parts of a bucket for the all-to-all, sums the part of this rank, and dequantizes the
// gathered sums.
#include <ATen/ops/linalg_vector_norm.h>

#include <cfloat>
#include <cmath>

#include "executor/reductions/reduction.h"
#include "strategies/reductions/reduction.h"

namespace shardmark::int8 {
namespace {

using strategies::kQuantisedBlock;

// The message for one part of a bucket, in 32-bit words: first the scales of its blocks, then the values.
struct Message {
  at::Tensor scales;  // [blocks, 1], float
  at::Tensor values;  // [blocks, kQuantisedBlock], int8
};

Message view_message(const at::Tensor& words, int64_t numel) {
  const int64_t num_blocks = numel / kQuantisedBlock;
  return {words.narrow(0, 0, num_blocks).view(at::kFloat).view({num_blocks, 1}),
          words.narrow(0, num_blocks, numel / 4).view(at::kChar).view({num_blocks, -1})};
}

// Overwrites `blocks` ([blocks, kQuantisedBlock], float). A block that has an infinity or a NaN gets a scale
// that is not finite, so that it is not finite after dequantization either.
void quantise(const at::Tensor& blocks, Message message) {
  at::linalg_vector_norm_out(message.scales, blocks, INFINITY, /*dim=*/1, /*keepdim=*/true);
  message.scales.div_(127).clamp_min_(FLT_MIN);
  at::Tensor(blocks).div_(message.scales).round_();
  message.values.copy_(blocks);
}

void dequantise(const Message& message, const at::Tensor& blocks) {
  at::Tensor(blocks).copy_(message.values).mul_(message.scales);
}

class Int8 final : public ReductionKernels {
 public:
  explicit Int8(const KernelContext& context) : rank_(context.rank), ranks_(context.ranks) {
    for (const ReducedTensors& bucket : context.buckets)
      buckets_.push_back({bucket.gradients, bucket.scratch.at("messages to all"),
                          bucket.scratch.at("messages of all"),
                          bucket.scratch.at("sum of a part").view({-1, kQuantisedBlock}),
                          bucket.scratch.at("summand").view({-1, kQuantisedBlock})});
  }

  // Quantizes the part of each rank into the message for that rank.
  void pack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const at::Tensor part = part_of(bucket, rank);
      bucket.one.zero_();  // the part may end behind the end of the bucket
      bucket.one.view(-1).narrow(0, 0, part.numel()).copy_(part);
      quantise(bucket.one, message_of(bucket, bucket.mine, rank));
    }
  }

  void combine(size_t index) override {  // adds in rank order
    BucketTensors& bucket = buckets_[index];
    bucket.sum.zero_();
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      dequantise(message_of(bucket, bucket.theirs, rank), bucket.one);
      bucket.sum.add_(bucket.one);
    }
    quantise(bucket.sum, message_of(bucket, bucket.mine, rank_));
  }

  // Dequantizes the sums of all parts, which the all-gather has brought.
  void unpack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const at::Tensor part = part_of(bucket, rank);
      dequantise(message_of(bucket, bucket.mine, rank), bucket.one);
      part.copy_(bucket.one.view(-1).narrow(0, 0, part.numel()));
    }
  }

 private:
  struct BucketTensors {
    at::Tensor gradients;  // [numel]
    at::Tensor mine;       // messages of this rank to each; then the sums of all parts
    at::Tensor theirs;     // messages of each rank to this one
    at::Tensor sum, one;   // [blocks of a part, kQuantisedBlock], float
  };

  // A rank's part of the gradients. The last parts may be shorter than the others, or empty.
  static at::Tensor part_of(const BucketTensors& bucket, int64_t rank) {
    const int64_t numel = bucket.gradients.numel(), begin = std::min(numel, rank * bucket.one.numel());
    return bucket.gradients.narrow(0, begin, std::min(bucket.one.numel(), numel - begin));
  }
  Message message_of(const BucketTensors& bucket, const at::Tensor& messages, int64_t rank) const {
    const int64_t num_words = messages.numel() / ranks_;
    return view_message(messages.narrow(0, rank * num_words, num_words), bucket.one.numel());
  }

  int64_t rank_, ranks_;
  std::vector<BucketTensors> buckets_;
};

const Registration<KernelsEntry> registered{
    "int8",
    {"8-bit numbers with a scale per block",
     [](const KernelContext& context) -> std::unique_ptr<ReductionKernels> {
       return std::make_unique<Int8>(context);
     }}};

}  // namespace
}  // namespace shardmark::int8

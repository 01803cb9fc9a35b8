// int8: every rank sends each part of its bucket, as 8-bit numbers with a scale per block, to the rank that
// sums it; the sums go to all in the same form. Rounded twice, nothing is kept. Sources: Alistarh et al.
// (QSGD), NeurIPS 2017; Wang et al. (ZeRO++), 2023.
#include <ATen/ops/linalg_vector_norm.h>

#include <cfloat>
#include <cmath>

#include "device/meter.h"
#include "laws/compressed.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {
namespace {

// One part in a row of 32-bit words: its scales, then its values.
struct Message {
  at::Tensor scales;  // [blocks, 1], float
  at::Tensor values;  // [blocks, kQuantisedBlock], int8
};

Message view_message(const at::Tensor& words, const laws::QuantisedParts& parts) {
  const int64_t num_blocks = parts.numel / laws::kQuantisedBlock;
  return {words.narrow(0, 0, num_blocks).view(at::kFloat).view({num_blocks, 1}),
          words.narrow(0, num_blocks, parts.numel / 4).view(at::kChar).view({num_blocks, -1})};
}

// Leaves `blocks` ([blocks, kQuantisedBlock], float) changed. What is infinite or no number stays so.
void quantise(const at::Tensor& blocks, Message message) {
  at::linalg_vector_norm_out(message.scales, blocks, INFINITY, /*dim=*/1, /*keepdim=*/true);
  message.scales.div_(127).clamp_min_(FLT_MIN);
  at::Tensor(blocks).div_(message.scales).round_();
  message.values.copy_(blocks);
}

void dequantise(const Message& message, const at::Tensor& blocks) {
  at::Tensor(blocks).copy_(message.values).mul_(message.scales);
}

class Int8 final : public Reduction {
 public:
  explicit Int8(const ReductionContext& context) : comm_(context.comm) {
    const meter::Scope scope(MemoryUse::transient);
    int64_t largest = 0;
    for (const at::Tensor& gradients : context.gradients) {
      const auto parts = laws::quantised_parts(gradients.numel(), comm_.size());
      const int64_t num_words = comm_.size() * parts.bytes / 4;
      buckets_.push_back(
          {gradients, parts, comm_.allocate(num_words, at::kInt), comm_.allocate(num_words, at::kInt), {}});
      largest = std::max(largest, parts.numel);
    }
    sum_ = comm_.allocate(largest, at::kFloat);
    one_ = comm_.allocate(largest, at::kFloat);
  }

  void start(size_t index) override {
    Bucket& bucket = buckets_[index];
    const at::Tensor blocks = blocks_of(one_, bucket);
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const at::Tensor part = part_of(bucket, rank);
      at::Tensor(blocks).zero_();  // behind the end of the bucket
      blocks.view(-1).narrow(0, 0, part.numel()).copy_(part);
      quantise(blocks, message_of(bucket, bucket.mine, rank));
    }
    bucket.work = comm_.all_to_all(bucket.theirs, bucket.mine);
  }

  void finish() override {
    for (Bucket& bucket : buckets_) {
      bucket.work.wait();
      add_up(bucket);
      quantise(blocks_of(sum_, bucket), message_of(bucket, bucket.mine, comm_.rank()));
      bucket.work = comm_.all_gather(bucket.mine, words_of(bucket.mine, comm_.rank()));
    }
    for (Bucket& bucket : buckets_) {
      bucket.work.wait();
      for (int rank = 0; rank < comm_.size(); ++rank) {
        const at::Tensor part = part_of(bucket, rank), blocks = blocks_of(one_, bucket);
        dequantise(message_of(bucket, bucket.mine, rank), blocks);
        part.copy_(blocks.view(-1).narrow(0, 0, part.numel()));
      }
    }
  }

 private:
  struct Bucket {
    at::Tensor gradients;  // [numel]
    laws::QuantisedParts parts;
    at::Tensor mine;    // messages of this rank to each; then the sums of all parts
    at::Tensor theirs;  // messages of each rank to this one
    Work work;
  };

  // In rank order.
  void add_up(const Bucket& bucket) {
    const at::Tensor sum = blocks_of(sum_, bucket), one = blocks_of(one_, bucket);
    at::Tensor(sum).zero_();
    for (int rank = 0; rank < comm_.size(); ++rank) {
      dequantise(message_of(bucket, bucket.theirs, rank), one);
      at::Tensor(sum).add_(one);
    }
  }

  // Of the gradients; the last parts may be shorter than the others, or empty.
  static at::Tensor part_of(const Bucket& bucket, int rank) {
    const int64_t numel = bucket.gradients.numel(), begin = std::min(numel, rank * bucket.parts.numel);
    return bucket.gradients.narrow(0, begin, std::min(bucket.parts.numel, numel - begin));
  }
  static at::Tensor blocks_of(const at::Tensor& scratch, const Bucket& bucket) {
    return scratch.narrow(0, 0, bucket.parts.numel).view({-1, laws::kQuantisedBlock});
  }
  at::Tensor words_of(const at::Tensor& messages, int rank) const {
    const int64_t num_words = messages.numel() / comm_.size();
    return messages.narrow(0, rank * num_words, num_words);
  }
  Message message_of(const Bucket& bucket, const at::Tensor& messages, int rank) const {
    return view_message(words_of(messages, rank), bucket.parts);
  }

  Communicator& comm_;
  std::vector<Bucket> buckets_;
  at::Tensor sum_, one_;  // of a part, float
};

std::unique_ptr<Reduction> make(const ReductionContext& context) { return std::make_unique<Int8>(context); }

const Registration<ReductionEntry> registered{"int8", {"8-bit numbers with a scale per block", make}};

}  // namespace
}  // namespace shardmark

// topk: every rank sends the largest elements of its gradient (with what it has not sent before) as values
// and 32-bit indices, and adds up what all sent in rank order. Sources: Aji and Heafield, EMNLP 2017; Stich
// et al., NeurIPS 2018.
#include <ATen/ops/abs.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/topk.h>

#include "device/meter.h"
#include "laws/compressed.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {
namespace {

// k values and k indices in a row of 32-bit words.
struct Message {
  at::Tensor values;   // [k]
  at::Tensor indices;  // [k], int32
};

Message view_message(const at::Tensor& words, int64_t k, at::ScalarType dtype) {
  const int64_t num_value_words = words.numel() - k;
  return {words.narrow(0, 0, num_value_words).view(dtype), words.narrow(0, num_value_words, k)};
}

class TopK final : public Reduction {
 public:
  explicit TopK(const ReductionContext& context) : comm_(context.comm) {
    const auto ratio = context.options.at("ratio").get<double>();
    const at::ScalarType dtype = context.gradients.front().scalar_type();
    const auto element_bytes = static_cast<int64_t>(at::elementSize(dtype));
    int64_t most = 0, largest = 0;
    for (const at::Tensor& gradients : context.gradients) {
      const int64_t k = laws::num_selected(gradients.numel(), ratio);
      const int64_t num_words = k * element_bytes / 4 + k;
      buckets_.push_back({gradients,
                          allocate(MemoryUse::gradients, gradients.numel(), dtype),
                          allocate(MemoryUse::transient, comm_.size() * num_words, at::kInt),
                          k,
                          {}});
      most = std::max(most, k);
      largest = std::max(largest, gradients.numel());
    }
    magnitudes_ = allocate(MemoryUse::transient, largest, dtype);
    largest_ = allocate(MemoryUse::transient, most, dtype);
    where_ = allocate(MemoryUse::transient, most, at::kLong);
  }

  void start(size_t index) override {
    Bucket& bucket = buckets_[index];
    at::Tensor magnitudes = magnitudes_.narrow(0, 0, bucket.residual.numel());
    at::Tensor largest = largest_.narrow(0, 0, bucket.k), where = where_.narrow(0, 0, bucket.k);
    bucket.residual.add_(bucket.gradients);
    at::abs_out(magnitudes, bucket.residual);
    at::topk_out(largest, where, magnitudes, bucket.k, /*dim=*/0, /*largest=*/true, /*sorted=*/false);

    const at::Tensor own = words_of(bucket, comm_.rank());
    Message message = view_message(own, bucket.k, bucket.gradients.scalar_type());
    at::index_select_out(message.values, bucket.residual, 0, where);
    message.indices.copy_(where);
    bucket.residual.index_fill_(0, where, 0);
    bucket.work = comm_.all_gather(bucket.words, own);
  }

  void finish() override {
    for (Bucket& bucket : buckets_) {
      bucket.work.wait();
      bucket.gradients.zero_();
      for (int rank = 0; rank < comm_.size(); ++rank) {
        const Message message =
            view_message(words_of(bucket, rank), bucket.k, bucket.gradients.scalar_type());
        bucket.gradients.index_add_(0, message.indices, message.values);
      }
    }
  }

  std::vector<at::Tensor> residuals() const override {
    std::vector<at::Tensor> all;
    all.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) all.push_back(bucket.residual);
    return all;
  }

 private:
  struct Bucket {
    at::Tensor gradients;  // [numel]
    at::Tensor residual;   // [numel]: not sent yet
    at::Tensor words;      // the messages of all ranks
    int64_t k;
    Work work;
  };

  at::Tensor allocate(MemoryUse use, int64_t numel, at::ScalarType dtype) {
    const meter::Scope scope(use);
    return comm_.allocate(numel, dtype);
  }
  at::Tensor words_of(const Bucket& bucket, int rank) const {
    const int64_t num_words = bucket.words.numel() / comm_.size();
    return bucket.words.narrow(0, rank * num_words, num_words);
  }

  Communicator& comm_;
  std::vector<Bucket> buckets_;
  // Of the bucket that is being selected from: a step allocates nothing, so no rank can fail alone in it.
  at::Tensor magnitudes_, largest_, where_;
};

std::unique_ptr<Reduction> make(const ReductionContext& context) { return std::make_unique<TopK>(context); }

const Registration<ReductionEntry> registered{"topk", {"largest elements, all-gathered", make}};

}  // namespace
}  // namespace shardmark

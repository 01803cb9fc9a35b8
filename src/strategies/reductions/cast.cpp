// cast: each bucket all-reduced in fp16 or bf16. The transport sums 16-bit types in float and rounds once; a
// sum beyond 65504 is infinite in fp16.
#include "device/meter.h"
#include "strategies/moves.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {
namespace {

class Cast final : public Reduction {
 public:
  explicit Cast(const ReductionContext& context) : comm_(context.comm), gradients_(context.gradients) {
    const bool half = context.options.at("to").get<std::string>() == "fp16";
    const meter::Scope scope(MemoryUse::transient);
    for (const at::Tensor& bucket : gradients_)
      messages_.push_back(comm_.allocate(bucket.numel(), half ? at::kHalf : at::kBFloat16));
  }

  void start(size_t bucket) override {
    messages_[bucket].copy_(gradients_[bucket]);
    works_.push_back(comm_.all_reduce(messages_[bucket], ReduceOp::sum));
  }
  void finish() override {
    wait_all(works_);
    for (size_t b = 0; b < gradients_.size(); ++b) gradients_[b].copy_(messages_[b]);
  }

 private:
  Communicator& comm_;
  std::vector<at::Tensor> gradients_;
  std::vector<at::Tensor> messages_;  // [bucket]
  Works works_;
};

std::unique_ptr<Reduction> make(const ReductionContext& context) { return std::make_unique<Cast>(context); }

const Registration<ReductionEntry> registered{"cast", {"all-reduced in fp16 or bf16", make}};

}  // namespace
}  // namespace shardmark

// plain: one all-reduce per bucket, in place.
#include "strategies/moves.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {
namespace {

class Plain final : public Reduction {
 public:
  explicit Plain(const ReductionContext& context) : comm_(context.comm), gradients_(context.gradients) {}

  void start(size_t bucket) override {
    works_.push_back(comm_.all_reduce(gradients_[bucket], ReduceOp::sum));
  }
  void finish() override { wait_all(works_); }
  bool lossy() const override { return false; }

 private:
  Communicator& comm_;
  std::vector<at::Tensor> gradients_;
  Works works_;
};

std::unique_ptr<Reduction> make(const ReductionContext& context) { return std::make_unique<Plain>(context); }

const Registration<ReductionEntry> registered{"plain", {"one all-reduce per bucket", make}};

}  // namespace
}  // namespace shardmark

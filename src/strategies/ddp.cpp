// ddp: replicas whose gradients are all-reduced bucket by bucket while backward still computes. Source: Li et
// al., VLDB 2020.
#include "strategies/moves.h"
#include "strategies/replica.h"
#include "strategies/schedule.h"

namespace shardmark {
namespace {

class Ddp final : public Strategy {
 public:
  explicit Ddp(const StrategyContext& context)
      : comm_(context.comm),
        model_(context.model),
        schedule_(make_schedule(context.model.table())),
        replica_(context, context.types().reduce),
        scale_(1.0 / static_cast<double>(comm_.size() * context.accumulation)) {
    cut_buckets(context.options);
  }

  void begin_micro_batch(int64_t, bool last) override {
    reducing_ = last;
    num_ready_ = 0;
    next_bucket_ = 0;
  }

  // Gradients complete in the order in which they lie in memory, so a count of elements says which buckets
  // are ready.
  void after_backward(int64_t block) override {
    for (size_t group : schedule_.complete_at[static_cast<size_t>(block)]) {
      replica_.collect(group);
      num_ready_ += replica_.layout()[group].numel;
    }
    if (!reducing_) return;
    for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].end <= num_ready_; ++next_bucket_)
      works_.push_back(comm_.all_reduce(buckets_[next_bucket_].gradients, ReduceOp::sum));
    comm_.progress();
  }

  void reduce() override {
    wait_all(works_);
    replica_.finish();
  }
  void update(const UpdateControl& control) override { replica_.update(control); }
  void set_learning_rate(double lr) override { replica_.set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  at::Tensor gradient_squares() override { return replica_.gradient_squares(); }
  std::vector<at::Tensor> replicated() override { return {replica_.parameters()}; }
  void visit_state(State what, const StateVisitor& visit) override { replica_.held(what).visit(visit); }
  void load_state(State what, const StateReader& read) override {
    replica_.held(what).load(read);
    replica_.refresh_copy();
  }

 private:
  struct Bucket {
    at::Tensor gradients;  // a stretch of the flat gradients
    int64_t end;           // in elements from their begin
  };

  void cut_buckets(const Options& options) {
    const auto elements = [&](const char* option) {
      return static_cast<int64_t>(options.at(option).get<double>() * 1e6) /
             static_cast<int64_t>(replica_.reduced().element_size());
    };
    int64_t begin = 0;
    for (const auto& bucket : laws::buckets(model_.table(), replica_.layout(), elements("first_bucket_mb"),
                                            elements("bucket_mb"))) {
      buckets_.push_back({replica_.reduced().narrow(0, begin, bucket.numel), begin + bucket.numel});
      begin += bucket.numel;
    }
  }

  Communicator& comm_;
  Model& model_;
  Schedule schedule_;
  Replica replica_;
  double scale_;
  std::vector<Bucket> buckets_;
  bool reducing_ = false;
  int64_t num_ready_ = 0;
  size_t next_bucket_ = 0;
  Works works_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) { return std::make_unique<Ddp>(context); }

const Registration<StrategyEntry> registered{"ddp", {"replicas; gradients all-reduced in buckets", make}};

}  // namespace
}  // namespace shardmark

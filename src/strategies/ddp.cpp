// ddp: replicas whose gradients are reduced bucket by bucket (reductions/) while backward still computes.
// Source: Li et al., VLDB 2020.
#include "laws/reduction_law.h"
#include "laws/schedule.h"
#include "strategies/reductions/reduction.h"
#include "strategies/replica.h"

namespace shardmark {
namespace {

class Ddp final : public Strategy {
 public:
  explicit Ddp(const StrategyContext& context)
      : comm_(context.comm),
        model_(context.model),
        schedule_(laws::make_schedule(context.model.table())),
        replica_(context, context.types().reduce),
        scale_(1.0 / static_cast<double>(comm_.size() * context.accumulation)) {
    cut_buckets(context);
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
    for (; next_bucket_ < ends_.size() && ends_[next_bucket_] <= num_ready_; ++next_bucket_)
      reduction_->start(next_bucket_);
    comm_.progress();
  }

  void reduce() override {
    reduction_->finish();
    replica_.finish();
  }
  void update(const UpdateControl& control) override { replica_.update(control); }
  void set_learning_rate(double lr) override { replica_.set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  at::Tensor gradient_squares() override { return replica_.gradient_squares(); }
  std::vector<at::Tensor> replicated() override { return {replica_.parameters()}; }
  bool lossy() const override { return reduction_->lossy(); }
  void visit_state(State what, const StateVisitor& visit) override { replica_.held(what).visit(visit); }
  void load_state(State what, const StateReader& read) override {
    replica_.held(what).load(read);
    replica_.refresh_copy();
  }

 private:
  void cut_buckets(const StrategyContext& context) {
    const auto elements = [&](const char* option) {
      return static_cast<int64_t>(context.options.at(option).get<double>() * 1e6) /
             static_cast<int64_t>(replica_.reduced().element_size());
    };
    const Choice choice = laws::reduction_of(context.options);
    ReductionContext cut{comm_, model_.table(), replica_.layout(), {}, {}, choice.options, context.seed};
    cut.buckets = laws::buckets(cut.model, cut.layout, elements("first_bucket_mb"), elements("bucket_mb"));
    int64_t begin = 0;
    for (const auto& bucket : cut.buckets) {
      cut.gradients.push_back(replica_.reduced().narrow(0, begin, bucket.numel));
      begin += bucket.numel;
      ends_.push_back(begin);
    }
    reduction_ = make_reduction(choice.name, cut);
  }

  Communicator& comm_;
  Model& model_;
  laws::Schedule schedule_;
  Replica replica_;
  double scale_;
  std::vector<int64_t> ends_;  // [bucket]: in elements from the begin of the gradients
  std::unique_ptr<Reduction> reduction_;
  bool reducing_ = false;
  int64_t num_ready_ = 0;
  size_t next_bucket_ = 0;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) { return std::make_unique<Ddp>(context); }

const Registration<StrategyEntry> registered{"ddp", {"replicas; gradients reduced in buckets", make}};

}  // namespace
}  // namespace shardmark

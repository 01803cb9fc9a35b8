// single: independent replicas, nothing moves.
#include "laws/schedule.h"
#include "strategies/replica.h"

namespace shardmark {
namespace {

class Single final : public Strategy {
 public:
  explicit Single(const StrategyContext& context)
      : schedule_(laws::make_schedule(context.model.table())),
        replica_(context, context.types().master),
        scale_(1.0 / static_cast<double>(context.accumulation)) {}

  void begin_micro_batch(int64_t, bool) override {}
  void after_backward(int64_t block) override {
    for (size_t group : schedule_.complete_at[static_cast<size_t>(block)]) replica_.collect(group);
  }
  void reduce() override { replica_.finish(); }
  void update(const UpdateControl& control) override { replica_.update(control); }
  void set_learning_rate(double lr) override { replica_.set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  at::Tensor gradient_squares() override { return replica_.gradient_squares(); }
  void visit_state(State what, const StateVisitor& visit) override { replica_.held(what).visit(visit); }
  void load_state(State what, const StateReader& read) override {
    replica_.held(what).load(read);
    replica_.refresh_copy();
  }

 private:
  laws::Schedule schedule_;
  Replica replica_;
  double scale_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) { return std::make_unique<Single>(context); }

const Registration<StrategyEntry> registered{"single", {"independent replicas, one per rank", make}};

}  // namespace
}  // namespace shardmark

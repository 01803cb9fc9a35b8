// single: independent replicas, nothing moves.
#include "strategies/flat.h"
#include "strategies/state.h"

namespace shardmark {
namespace {

class Single final : public Strategy {
 public:
  explicit Single(const StrategyContext& context)
      : model_(context.model),
        comm_(context.comm),
        layout_(laws::even_layout(context.model.table(), 1)),
        parameters_(allocate_flat(context.model, context.comm, layout_, MemoryUse::parameters)),
        gradients_(allocate_flat(context.model, context.comm, layout_, MemoryUse::gradients)),
        optimizer_(make_optimizer(context.optimizer, {{parameters_.buffer, gradients_.buffer}})),
        scale_(1.0 / static_cast<double>(context.accumulation)) {
    for (size_t g = 0; g < layout_.size(); ++g) {
      fill_initial(model_, g, layout_[g], {0, layout_[g].numel}, context.seed, parameters_.groups[g]);
      bind_parameters(model_, g, layout_[g], parameters_.groups[g]);
      bind_gradients(model_, g, layout_[g], gradients_.groups[g]);
    }
  }

  void begin_micro_batch(int64_t, bool) override {}
  void reduce() override {}
  void update() override {
    optimizer_->step();
    gradients_.buffer.zero_();
  }
  void set_learning_rate(double lr) override { optimizer_->set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  double gradient_squares() override { return squares({gradients_.buffer}); }
  void visit_state(State what, const StateVisitor& visit) override { held(what).visit(visit); }
  void load_state(State what, const StateReader& read) override { held(what).load(read); }

 private:
  HeldState held(State what) {
    return {model_, comm_, layout_, parameters_.groups, what == State::all ? optimizer_.get() : nullptr};
  }

  Model& model_;
  Communicator& comm_;
  std::vector<laws::GroupLayout> layout_;
  FlatModel parameters_;
  FlatModel gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  double scale_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) { return std::make_unique<Single>(context); }

const Registration<StrategyEntry> registered{"single", {"independent replicas, one per rank", make}};

}  // namespace
}  // namespace shardmark

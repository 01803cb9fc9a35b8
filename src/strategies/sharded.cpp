// Walks the moments of a step through the two sides.
#include "strategies/sharded.h"

#include "strategies/state.h"

namespace shardmark {
namespace {

class Sharded final : public Strategy {
 public:
  Sharded(const StrategyContext& context, ShardedOptions options)
      : s_(sharded_model(context, options)),
        parameters_(options.hold.parameters == laws::Hold::part
                        ? make_slotted_parameters(s_, options.prefetch)
                        : make_resident_parameters(s_)),
        gradients_(options.hold.gradients == laws::Hold::part ? make_slotted_gradients(s_)
                                                              : make_resident_gradients(s_)),
        optimizer_(options.offload ? make_offloaded_optimizer(context.optimizer, pieces())
                                   : make_optimizer(context.optimizer, pieces(), context.comm.device())),
        scale_(1.0 / static_cast<double>(s_.all.size() * context.accumulation)) {}

  void begin_micro_batch(int64_t index, bool last) override {
    gradients_->begin_micro_batch(index, last);
    parameters_->begin_micro_batch();
  }
  void before_forward(int64_t block) override { parameters_->before_forward(block); }
  void after_forward(int64_t) override { s_.comm.progress(); }
  void before_backward(int64_t block) override {
    parameters_->before_backward(block);
    gradients_->before_backward(block);
  }
  void after_backward(int64_t block) override {
    gradients_->after_backward(block);
    s_.comm.progress();
  }
  void reduce() override { gradients_->finish(); }
  void update(const UpdateControl& control) override {
    optimizer_->step(control);
    gradients_->clear();
    parameters_->after_update();
  }
  void set_learning_rate(double lr) override { optimizer_->set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  at::Tensor gradient_squares() override {
    at::Tensor sum = squares(concatenated(gradients_->owned()), s_.comm.device());
    s_.comm.all_reduce(sum.view({1}), ReduceOp::sum).wait();
    return sum;
  }
  std::vector<at::Tensor> replicated() override { return parameters_->replicated(); }
  void visit_state(State what, const StateVisitor& visit) override { held(what).visit(visit); }
  void load_state(State what, const StateReader& read) override {
    held(what).load(read);
    optimizer_->parameters_changed();
    parameters_->after_update();
  }

 private:
  static ShardedModel sharded_model(const StrategyContext& context, ShardedOptions& options) {
    Communicator& all = context.comm;
    std::unique_ptr<Communicator> own_group, replicas;
    if (options.group < all.size()) {
      const int group = static_cast<int>(options.group);
      own_group = all.split(all.rank() / group, all.rank());
      replicas = all.split(all.rank() % group, all.rank());
      own_group->count_in(all);
      replicas->count_in(all);
    }
    Communicator& comm = own_group ? *own_group : all;
    return {context.model,
            all,
            std::move(own_group),
            std::move(replicas),
            comm,
            std::move(options.layout),
            laws::make_schedule(context.model.table()),
            context.seed,
            context.types()};
  }

  HeldState held(State what) {
    return {s_.model,
            s_.all,
            s_.comm,
            s_.layout,
            parameters_->owned(),
            what == State::all ? optimizer_.get() : nullptr};
  }
  std::vector<FlatPiece> pieces() {
    const auto parameters = concatenated(parameters_->owned());
    const auto gradients = concatenated(gradients_->owned());
    std::vector<FlatPiece> pieces;
    for (size_t i = 0; i < parameters.size(); ++i) pieces.push_back({parameters[i], gradients[i]});
    return pieces;
  }

  ShardedModel s_;
  std::unique_ptr<ParameterSide> parameters_;
  std::unique_ptr<GradientSide> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  double scale_;
};

}  // namespace

void start_replica_sum(ShardedModel& sharded, const std::vector<at::Tensor>& parts, Works& works) {
  if (!sharded.replicas) return;
  OneLaunch launch(*sharded.replicas);
  for (const auto& part : parts)
    if (part.numel() > 0) works.push_back(sharded.replicas->all_reduce(part, ReduceOp::sum));
  launch.end();
}

std::unique_ptr<Strategy> make_sharded(const StrategyContext& context, ShardedOptions options) {
  return std::make_unique<Sharded>(context, std::move(options));
}

}  // namespace shardmark

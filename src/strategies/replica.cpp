// Flat memory of a replica and what happens to it in a step.
#include "strategies/replica.h"

namespace shardmark {

Replica::Replica(const StrategyContext& context, at::ScalarType reduce)
    : model_(context.model), comm_(context.comm), layout_(laws::even_layout(context.model.table(), 1)) {
  const Precision types = context.types();
  mixed_ = types.mixed();
  promotes_ = mixed_ && reduce == types.master;
  const auto flat = [&](MemoryUse use, at::ScalarType dtype) {
    return allocate_flat(model_, context.comm, layout_, use, dtype);
  };
  master_ = flat(MemoryUse::parameters, types.master);
  copy_ = mixed_ ? flat(MemoryUse::parameters, types.compute) : master_;
  gradients_ = flat(MemoryUse::gradients, types.compute);
  main_gradients_ = mixed_ ? flat(MemoryUse::gradients, types.master) : gradients_;
  optimizer_ =
      make_optimizer(context.optimizer, {{master_.buffer, main_gradients_.buffer}}, master_.buffer.device());
  for (size_t g = 0; g < layout_.size(); ++g) {
    fill_initial(model_, g, layout_[g], {0, layout_[g].numel}, context.seed, master_.groups[g]);
    bind_parameters(model_, g, layout_[g], copy_.groups[g]);
    bind_gradients(model_, g, layout_[g], gradients_.groups[g]);
  }
  refresh_copy();
}

void Replica::collect(size_t group) {
  if (!promotes_) return;
  main_gradients_.groups[group].add_(gradients_.groups[group]);
  gradients_.groups[group].zero_();
}

void Replica::finish() {
  if (mixed_ && !promotes_) main_gradients_.buffer.copy_(gradients_.buffer);
}

at::Tensor Replica::gradient_squares() const {
  return squares({main_gradients_.buffer}, main_gradients_.buffer.device());
}

void Replica::update(const UpdateControl& control) {
  optimizer_->step(control);
  refresh_copy();
  reduced().zero_();
}

HeldState Replica::held(State what) {
  return {model_,
          comm_,
          comm_,
          layout_,
          one_piece_each(master_.groups),
          what == State::all ? optimizer_.get() : nullptr};
}

void Replica::refresh_copy() {
  if (mixed_) copy_.buffer.copy_(master_.buffer);
}

}  // namespace shardmark

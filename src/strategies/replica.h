// A whole model on one rank, in flat memory: what `single` trains and `ddp` keeps equal on all ranks.
#pragma once

#include "strategies/flat.h"
#include "strategies/state.h"

namespace shardmark {

// Note [Mixed replica]: blocks see a copy of the master weights in the compute type, and backward leaves
// gradients in it. The optimizer needs them in the master's type. Where they are reduced in that type, each
// group is added to the main gradients as soon as its backward is over, so that micro-batches add up in it;
// where they are reduced in the compute type, they add up and travel in it, and are converted at last.
class Replica {
 public:
  Replica(const StrategyContext& context, at::ScalarType reduce);

  const std::vector<laws::GroupLayout>& layout() const { return layout_; }
  // What is to be reduced, [total_numel], groups in backward order. Complete for a group after
  // collect(group).
  const at::Tensor& reduced() const { return promotes_ ? main_gradients_.buffer : gradients_.buffer; }
  void collect(size_t group);  // after its backward, of each micro-batch
  void finish();               // after the reduction, before squares and update

  at::Tensor gradient_squares() const;  // after finish()
  void update(const UpdateControl& control);
  void set_learning_rate(double lr) { optimizer_->set_learning_rate(lr); }
  const at::Tensor& parameters() const { return master_.buffer; }
  HeldState held(State what);
  void refresh_copy();  // after the master weights have changed

 private:
  Model& model_;
  Communicator& comm_;
  std::vector<laws::GroupLayout> layout_;
  bool mixed_, promotes_;
  FlatModel master_;
  FlatModel copy_;  // in the compute type: master_ itself unless mixed
  FlatModel gradients_;
  FlatModel main_gradients_;  // in the master's type: gradients_ itself unless mixed
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace shardmark

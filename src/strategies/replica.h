// A whole model on one rank, as single and ddp hold it.
#pragma once

#include "strategies/step_builder.h"

namespace shardmark::strategies {

// Note [Mixed replica]: blocks compute with a copy of the master weights in the compute type, and backward
// leaves gradients in that type. The optimizer needs gradients in the master type. If gradients are reduced
// in the master type, each group is moved to the main gradients as soon as its backward is done: the first
// micro-batch is copied, so that nothing has to be zeroed, and the others are added. If gradients are reduced
// in the compute type, micro-batches are added up and sent in that type, and converted once at the end.
//
// Note [Update in one pass]: with `fused_update` the optimizer's kernel takes gradients in the compute type,
// writes the copy together with the master weights, and zeroes the gradients. There are no main gradients
// then. It does not apply if micro-batches are added up in the master type, or if gradients are sent in it.
//
// `reduce` is the element type that gradients are reduced in.
inline bool updates_in_one_pass(const StepInput& input, Element reduce) {
  return input.fused_update && input.bytes.mixed() &&
         specs::bytes_of(reduce, input.bytes) == input.bytes.compute;
}

class Replica : public ShardingPolicy {
 public:
  Replica(StepBuilder& step, Element reduce) : step_(step) {
    const specs::ElementBytes& bytes = step.input().bytes;
    mixed_ = bytes.mixed();
    promotes_ = mixed_ && specs::bytes_of(reduce, bytes) == bytes.master;
    const auto allocate = [&](const char* name, Use use, Element element) {
      return step.allocate_groups(name, use, element);
    };
    master_ = allocate("parameters", Use::parameters, Element::master);
    copy_ = mixed_ ? allocate("parameters, compute copy", Use::parameters, Element::compute) : master_;
    gradients_ = allocate("gradients", Use::gradients, Element::compute);
    one_pass_ = updates_in_one_pass(step.input(), reduce);
    converts_ = mixed_ && !promotes_ && !one_pass_;
    main_ = promotes_ || converts_ ? allocate("main gradients", Use::gradients, Element::master) : gradients_;
    for (size_t group = 0; group < master_.size(); ++group) {
      step.place_parameters(group, copy_[group]);
      step.place_gradients(group, gradients_[group]);
    }
    is_begun_.resize(master_.size());
    step.updates(master_, main_, one_pass_ ? copy_ : std::vector<Slice>());
  }

  void after(const Position& at) override {
    for (const size_t group : at.complete) {
      if (!promotes_) continue;
      if (is_begun_[group])
        step_.add(main_[group], gradients_[group]);
      else
        step_.copy(main_[group], gradients_[group]);
      is_begun_[group] = true;
      step_.zero(gradients_[group]);
    }
  }
  void finish() override {
    if (converts_) step_.copy(StepBuilder::all_of(main_), StepBuilder::all_of(gradients_));
  }
  void publish() override {
    if (one_pass_) return;
    if (mixed_) step_.copy(StepBuilder::all_of(copy_), parameters());
    if (!promotes_) step_.zero(StepBuilder::all_of(gradients_));
  }

 protected:
  // The memory that is to be reduced, with groups in backward order. A group's gradients are complete after
  // its last backward.
  Slice reduced() const { return StepBuilder::all_of(promotes_ ? main_ : gradients_); }
  Slice parameters() const { return StepBuilder::all_of(master_); }

  StepBuilder& step_;

 private:
  bool mixed_ = false, promotes_ = false, converts_ = false, one_pass_ = false;
  std::vector<bool> is_begun_;  // [group]: its main gradients hold those of a micro-batch
  std::vector<Slice> master_, copy_, gradients_, main_;
};

}  // namespace shardmark::strategies

// What ZeRO-1 and ZeRO-2 hold: parameters, or gradients too, whole on every rank, of which each updates its
// shards.
#pragma once

#include "strategies/step.h"

namespace shardmark::strategies {

// The updated shards are gathered in place while the next forward already begins.
class WholeParameters : public Holder {
 public:
  explicit WholeParameters(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("parameters", Use::parameters, Element::compute)) {
    step.replicated(StepBuilder::all_of(whole_));
    own_ = step.input().bytes.mixed()
               ? step.allocate_shards("master parameters", Use::parameters, Element::master)
               : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_parameters(group, whole_[group]);
  }

  const ModelShards& own() const { return own_; }
  void before(const Position& at) override {
    for (const size_t group : at.first_used) waits_.emplace_back(group, step_.wait_for_step_before());
  }
  void publish() override {
    std::vector<Operations> gathers;
    for (size_t group = 0; group < whole_.size(); ++group)
      gathers.push_back(step_.unshard(group, whole_[group], own_));
    for (const auto& [group, wait] : waits_) step_.fill_in(wait, gathers[group]);
  }

 private:
  StepBuilder& step_;
  std::vector<Slice> whole_;
  ModelShards own_;
  std::vector<std::pair<size_t, size_t>> waits_;  // group, instruction
};

// Micro-batches add up in the type that is reduced; reduced with the last one.
class WholeGradients : public Holder {
 public:
  explicit WholeGradients(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("gradients", Use::gradients, Element::compute)) {
    const specs::ElementBytes& bytes = step.input().bytes;
    sent_ = bytes.converts() ? step.allocate_groups("gradients, converted", Use::transient, Element::reduce)
                             : whole_;
    own_ = bytes.mixed() ? step.allocate_shards("main gradients", Use::gradients, Element::master)
                         : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_gradients(group, whole_[group]);
  }

  const ModelShards& own() const { return own_; }
  void after(const Position& at) override {
    for (const size_t group : at.complete) {
      if (sent_[group] != whole_[group]) {
        step_.add(sent_[group], whole_[group]);
        step_.zero(whole_[group]);
      }
      if (at.is_last) reductions_.push_back(step_.reduce(group, sent_[group]));
    }
  }
  void finish() override {
    for (Operations& reduction : reductions_) step_.wait(reduction);
    std::vector<Operations> of_replicas;
    for (size_t group = 0; group < whole_.size(); ++group) {
      if (step_.input().bytes.mixed())
        step_.copy(own_.of[group], step_.shard_of(step_.layout()[group], sent_[group]));
      of_replicas.push_back(step_.sum_over_replicas(group, own_.of[group]));
    }
    for (Operations& sum : of_replicas) step_.wait(sum);
  }
  void publish() override { step_.zero(StepBuilder::all_of(sent_)); }

 private:
  StepBuilder& step_;
  std::vector<Slice> whole_, sent_;
  ModelShards own_;
  std::vector<Operations> reductions_;
};

}  // namespace shardmark::strategies

// How ZeRO-1 and ZeRO-2 hold parameters and ZeRO-1 holds gradients: whole on every rank, which updates only
// its own shard of them.
#pragma once

#include <algorithm>
#include <vector>

#include "strategies/step.h"

namespace shardmark::strategies {

// The updated shards are all-gathered in place. The groups that the next step uses first are gathered right
// after the update, and each of the others when forward comes near it. Starting all of them at once would
// take as long, but NCCL begins operations in the order in which they are started (serving.h), so the first
// exchange inside a tensor-parallel block would wait until the last gather has begun. An evaluation, which
// follows a step, gathers the others itself.
class WholeParameters : public Holder {
 public:
  explicit WholeParameters(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("parameters", Use::parameters, Element::compute)) {
    step.replicated(StepBuilder::all_of(whole_));
    own_ = step.input().bytes.mixed()
               ? step.allocate_shards("master parameters", Use::parameters, Element::master)
               : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_parameters(group, whole_[group]);
    gathers_.resize(whole_.size());
    const std::vector<size_t> in_step = used_at(step.positions_of_step());
    for (size_t group = 0; group < whole_.size(); ++group) {
      is_published_.push_back(in_step[group] < kAhead);
      if (!is_published_[group]) late_.push_back(group);
    }
    used_at_ = used_at(step.positions());
    std::stable_sort(late_.begin(), late_.end(),
                     [&](size_t a, size_t b) { return used_at_[a] < used_at_[b]; });
  }

  const ModelShards& own() const { return own_; }
  // Starts the gathers of the groups that are needed soon, and waits for those that are needed now. The
  // numbers of the calls that publish() starts in the step before are known only there.
  void before(const Position& at) override {
    for (; num_started_ < late_.size() && used_at_[late_[num_started_]] <= position_ + kAhead;
         ++num_started_) {
      const size_t group = late_[num_started_];
      gathers_[group] = step_.unshard(group, whole_[group], own_);
    }
    ++position_;
    for (const size_t group : at.first_used) {
      if (is_published_[group])
        waits_.emplace_back(group, step_.wait_for_step_before());
      else
        step_.wait(gathers_[group]);
    }
  }
  void publish() override {
    for (size_t group = 0; group < whole_.size(); ++group)
      if (is_published_[group]) gathers_[group] = step_.unshard(group, whole_[group], own_);
    for (const auto& [group, wait] : waits_) step_.fill_in(wait, gathers_[group]);
  }

 private:
  static constexpr size_t kAhead = 3;  // positions of the schedule: the batch is loaded at the first one

  // [group]: the position that uses it first.
  std::vector<size_t> used_at(const std::vector<Position>& positions) const {
    std::vector<size_t> used_at(whole_.size(), 0);
    for (size_t position = 0; position < positions.size(); ++position)
      for (const size_t group : positions[position].first_used) used_at[group] = position;
    return used_at;
  }

  StepBuilder& step_;
  std::vector<Slice> whole_;
  ModelShards own_;
  std::vector<size_t> used_at_;
  std::vector<bool> is_published_;                // [group]: gathered right after the update
  std::vector<size_t> late_;                      // the other groups, in the order of their use
  std::vector<Operations> gathers_;               // [group]
  std::vector<std::pair<size_t, size_t>> waits_;  // group, instruction
  size_t position_ = 0, num_started_ = 0;         // num_started_: of late_
};

// Micro-batches are added up in the type that is sent, and reduced once, after the last one.
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

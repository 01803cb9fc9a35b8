// Two sides, parameters and gradients, each held whole or in parts; the moments at which they move.
#include "laws/sharded_program.h"

#include <memory>

#include "laws/schedule.h"
#include "laws/sharded_cost.h"
#include "laws/step_walk.h"

namespace shardmark::laws {
namespace {

using Works = std::vector<int64_t>;  // operations in flight

// What both sides work on.
struct Moves {
  const CostInput& input;
  const std::vector<GroupLayout>& layout;
  int64_t group;
  Schedule schedule;
  Program& program;

  double bytes(int64_t numel, int64_t each) const { return static_cast<double>(numel * each); }

  // One operation for each piece of a group: a collective over equal parts, or from or to the owner.
  Works start(size_t g, const char* cut, const char* whole, int64_t element_bytes) const {
    Works works;
    for (const Piece& piece : layout[g].pieces)
      works.push_back(program.start({piece.owner == Piece::kCut ? cut : whole,
                                     bytes(piece.range.numel, element_bytes), group, 1, piece.owner}));
    return works;
  }
  Works start_gather(size_t g) const { return start(g, "all_gather", "broadcast", input.bytes.compute); }
  Works start_reduce(size_t g) const { return start(g, "reduce_scatter", "reduce", input.bytes.reduce); }
  void start_replica_sum(size_t g, Works& works) const {
    if (group == input.ranks) return;
    for (size_t piece = 0; piece < layout[g].pieces.size(); ++piece) {
      const int64_t numel = layout[g].owned(piece, 0).numel;
      if (numel > 0)
        works.push_back(
            program.start({"all_reduce", bytes(numel, input.bytes.master), input.ranks / group, group}));
    }
  }
  void wait_all(Works& works) const {
    for (const int64_t work : works) program.add(Moment::What::wait, work);
    works.clear();
  }
};

class ParameterWalk {
 public:
  virtual ~ParameterWalk() = default;
  virtual void begin_micro_batch() = 0;
  virtual void before_forward(size_t block) = 0;
  virtual void before_backward(size_t block) = 0;
  virtual void after_update() = 0;
};

// strategies/slotted_parameters.cpp, Note [Slots]
class SlottedParameters final : public ParameterWalk {
 public:
  explicit SlottedParameters(const Moves& moves)
      : m_(moves),
        num_units_(static_cast<int64_t>(m_.schedule.units.size())),
        prefetch_(m_.input.options.at("prefetch").get<int64_t>()),
        works_(static_cast<size_t>(prefetch_ + 1)) {}

  void begin_micro_batch() override {
    num_started_ = 0;
    if (!roots_gathered_)
      for (const size_t g : m_.schedule.roots)
        for (const int64_t work : m_.start_gather(g)) root_works_.push_back(work);
    roots_gathered_ = true;
    start_until(0);
  }
  void before_forward(size_t block) override {
    m_.wait_all(root_works_);
    const int64_t unit = m_.schedule.unit_of_block[block];
    if (unit >= 0) use(unit);
  }
  void before_backward(size_t block) override {
    const int64_t unit = m_.schedule.unit_of_block[block];
    if (unit >= 0) use(2 * (num_units_ - 1) - unit);
  }
  void after_update() override {}

 private:
  void start_until(int64_t position) {
    for (; num_started_ <= position && num_started_ < 2 * num_units_ - 1; ++num_started_) {
      const int64_t unit = num_started_ < num_units_ ? num_started_ : 2 * (num_units_ - 1) - num_started_;
      slot(num_started_) = m_.start_gather(static_cast<size_t>(m_.schedule.units[static_cast<size_t>(unit)]));
    }
  }
  void use(int64_t position) {
    start_until(position + prefetch_);
    m_.wait_all(slot(position));
  }
  Works& slot(int64_t position) { return works_[static_cast<size_t>(position % (prefetch_ + 1))]; }

  const Moves& m_;
  int64_t num_units_, prefetch_, num_started_ = 0;
  std::vector<Works> works_;  // [slot]
  Works root_works_;
  bool roots_gathered_ = false;
};

// strategies/resident.cpp. Gathered after the update, waited for in the next step: its waits come before
// their starts, so operations have the numbers that the end of the step will give them.
class ResidentParameters final : public ParameterWalk {
 public:
  explicit ResidentParameters(const Moves& moves) : m_(moves), waits_(m_.layout.size()) {}

  void begin_micro_batch() override {}
  void before_forward(size_t block) override {
    for (size_t g = 0; g < m_.layout.size() && !waited_; ++g) {
      if (m_.input.model.groups[g].first_block != static_cast<int64_t>(block)) continue;
      for (size_t piece = 0; piece < m_.layout[g].pieces.size(); ++piece) {
        waits_[g].push_back(m_.program.moments.size());
        m_.program.add(Moment::What::wait);
      }
    }
    if (block + 1 == m_.input.model.blocks.size()) waited_ = true;
  }
  void before_backward(size_t) override {}
  void after_update() override {
    for (size_t g = 0; g < m_.layout.size(); ++g) {
      const Works works = m_.start_gather(g);
      for (size_t i = 0; i < works.size(); ++i) m_.program.moments[waits_[g][i]].index = works[i];
    }
  }

 private:
  const Moves& m_;
  std::vector<std::vector<size_t>> waits_;  // [group][piece]: moments
  bool waited_ = false;                     // in the first micro-batch alone
};

class GradientWalk {
 public:
  virtual ~GradientWalk() = default;
  virtual void begin_micro_batch(bool last) = 0;
  virtual void before_backward(size_t block) = 0;
  virtual void after_backward(size_t block) = 0;
  virtual void finish() = 0;
};

// strategies/slotted_gradients.cpp
class SlottedGradients final : public GradientWalk {
 public:
  explicit SlottedGradients(const Moves& moves) : m_(moves), slots_(kGradientSlots) {
    for (const size_t g : m_.schedule.roots) roots_.push_back({g, {}});
  }
  void begin_micro_batch(bool last) override {
    finish();
    last_ = last;
    position_ = 0;
  }
  void before_backward(size_t block) override {
    const int64_t group = m_.schedule.own_group[block];
    if (group == kNoGroup) return;
    Slot& slot = slots_[position_ % slots_.size()];
    finish(slot);
    slot.group = static_cast<size_t>(group);
  }
  void after_backward(size_t block) override {
    for (const size_t group : m_.schedule.complete_at[block]) {
      Slot* slot = nullptr;
      for (Slot& root : roots_)
        if (root.group == group) slot = &root;
      if (slot == nullptr) slot = &slots_[position_++ % slots_.size()];
      slot->works = m_.start_reduce(group);
    }
  }
  void finish() override {
    for (Slot& slot : slots_) finish(slot);
    for (Slot& root : roots_) finish(root);
    m_.wait_all(works_);
  }

 private:
  struct Slot {
    size_t group = 0;
    Works works;
  };
  void finish(Slot& slot) {
    if (slot.works.empty()) return;
    m_.wait_all(slot.works);
    if (last_) m_.start_replica_sum(slot.group, works_);
  }

  const Moves& m_;
  std::vector<Slot> slots_, roots_;
  size_t position_ = 0;
  bool last_ = true;
  Works works_;  // among replicas
};

// strategies/resident.cpp
class ResidentGradients final : public GradientWalk {
 public:
  explicit ResidentGradients(const Moves& moves) : m_(moves) {}
  void begin_micro_batch(bool last) override { reducing_ = last; }
  void before_backward(size_t) override {}
  void after_backward(size_t block) override {
    if (!reducing_) return;
    for (const size_t group : m_.schedule.complete_at[block])
      for (const int64_t work : m_.start_reduce(group)) works_.push_back(work);
  }
  void finish() override {
    m_.wait_all(works_);
    for (size_t g = 0; g < m_.layout.size(); ++g) m_.start_replica_sum(g, works_);
    m_.wait_all(works_);
  }

 private:
  const Moves& m_;
  bool reducing_ = false;
  Works works_;
};

class ShardedWalk final : public StepWalk {
 public:
  ShardedWalk(const CostInput& input, const std::vector<GroupLayout>& layout, int64_t group, ShardedHold hold)
      : moves_{input, layout, group, make_schedule(input.model), made_} {
    if (hold.parameters == Hold::part)
      parameters_ = std::make_unique<SlottedParameters>(moves_);
    else
      parameters_ = std::make_unique<ResidentParameters>(moves_);
    if (hold.gradients == Hold::part)
      gradients_ = std::make_unique<SlottedGradients>(moves_);
    else
      gradients_ = std::make_unique<ResidentGradients>(moves_);
  }

 protected:
  void begin_micro_batch(bool last) override {
    gradients_->begin_micro_batch(last);
    parameters_->begin_micro_batch();
  }
  void before_forward(size_t block) override { parameters_->before_forward(block); }
  void before_backward(size_t block) override {
    parameters_->before_backward(block);
    gradients_->before_backward(block);
  }
  void after_backward(size_t block) override { gradients_->after_backward(block); }
  void reduce() override { gradients_->finish(); }
  void sum_squares() override {
    made_.add(Moment::What::wait, made_.start({"all_reduce", sizeof(double), moves_.group, 1}));
  }
  void after_update() override { parameters_->after_update(); }

 private:
  Moves moves_;
  std::unique_ptr<ParameterWalk> parameters_;
  std::unique_ptr<GradientWalk> gradients_;
};

}  // namespace

ShardedHold hold_of(const Options& fsdp_options) {
  const auto shard = fsdp_options.at("shard").get<std::string>();
  return {shard == "full" ? Hold::part : Hold::whole, shard == "optimizer" ? Hold::whole : Hold::part};
}

Program sharded_program(const CostInput& input, const std::vector<GroupLayout>& layout, int64_t group,
                        ShardedHold hold) {
  return ShardedWalk(input, layout, group, hold).program(input);
}

}  // namespace shardmark::laws

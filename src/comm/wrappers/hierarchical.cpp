// The two forms of hierarchical all-reduce. transports.h describes them and what they send.
#include "comm/in_step.h"
#include "comm/transports.h"
#include "comm/wrappers/stages.h"

namespace shardmark {
namespace {

// The communicators of the three stages. The first and the last have the same ranks, but are two
// communicators: Note [Order of stages].
struct Levels {
  std::unique_ptr<Communicator> first;  // this rank's node
  // This rank and the ranks of the same local rank on other nodes. In the leader form it is nullptr on ranks
  // that do not lead their node.
  std::unique_ptr<Communicator> across;
  std::unique_ptr<Communicator> last;  // this rank's node again
};

class Hierarchical final : public Communicator {
 public:
  Hierarchical(std::unique_ptr<Communicator> flat, Levels levels, bool sharded, std::string name)
      : flat_(std::move(flat)),
        levels_(std::move(levels)),
        sharded_(sharded),
        name_(std::move(name)),
        queue_(all()) {}

  int rank() const override { return flat_->rank(); }
  int size() const override { return flat_->size(); }
  at::Device device() const override { return flat_->device(); }
  std::string transport() const override { return name_; }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return flat_->allocate(numel, dtype); }
  double bytes_between_nodes() const override {
    return levels_.across ? levels_.across->traffic().ring_bytes : 0;
  }
  void trim() override {
    for (Communicator* comm : all()) comm->trim();
  }
  std::string take_copied() override { return flat_->take_copied(); }
  std::shared_ptr<void> in_order() override { return flat_->in_order(); }

 protected:
  using Tensor = const at::Tensor&;

  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    return flat_->split(color, key, use);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    if (call.what != Collective::all_reduce) return queue_.pass(flat_->start(call));
    return queue_.start(sharded_ ? sharded_stages(call.out, call.in, call.op)
                                 : leader_stages(call.out, call.in, call.op));
  }
  void do_progress() override { queue_.progress(); }

 private:
  std::vector<Communicator*> all() const {
    std::vector<Communicator*> all;
    for (const auto* comm : {&flat_, &levels_.first, &levels_.across, &levels_.last})
      if (*comm) all.push_back(comm->get());
    return all;
  }

  // The stages compute sums. An average over all ranks is one division after the second stage.
  static ReduceOp stage_op(ReduceOp op) { return op == ReduceOp::average ? ReduceOp::sum : op; }
  void divide(Tensor sums, ReduceOp op) const {
    if (op == ReduceOp::average) at::Tensor(sums).div_(size());
  }

  Staged leader_stages(Tensor out, Tensor in, ReduceOp op) {
    const Stage reduce = [this, out, in, op] { return levels_.first->reduce(out, in, 0, stage_op(op)); };
    const Stage between = [this, out, op] {
      return levels_.across ? levels_.across->all_reduce(out, stage_op(op)) : Work();
    };
    const Stage broadcast = [this, out, op] {
      if (levels_.across) divide(out, op);
      return levels_.last->broadcast(out, 0);
    };
    return {{reduce, between, broadcast}, {out, in}, {}};
  }

  // If the elements cannot be divided evenly among the ranks of a node, the rest (fewer elements than ranks)
  // is all-reduced by the flat communicator.
  Staged sharded_stages(Tensor out, Tensor in, ReduceOp op) {
    const int64_t share = out.numel() / levels_.first->size(), even = share * levels_.first->size();
    const at::Tensor whole = out.view(-1).narrow(0, 0, even), given = in.view(-1).narrow(0, 0, even);
    const at::Tensor part = whole.narrow(0, levels_.first->rank() * share, share);
    const Stage scatter = [this, part, given, op] {
      return levels_.first->reduce_scatter(part, given, stage_op(op));
    };
    const Stage between = [this, part, op] { return levels_.across->all_reduce(part, stage_op(op)); };
    const Stage gather = [this, part, whole, op] {
      divide(part, op);
      return levels_.last->all_gather(whole, part);
    };
    const int64_t rest = out.numel() - even;
    return {{scatter, between, gather},
            {out, in},
            rest == 0 ? Work()
                      : flat_->all_reduce(out.view(-1).narrow(0, even, rest),
                                          in.view(-1).narrow(0, even, rest), op)};
  }

  std::unique_ptr<Communicator> flat_;
  Levels levels_;
  bool sharded_;
  std::string name_;
  StageQueue queue_;
};

}  // namespace

std::unique_ptr<Communicator> make_hierarchical_communicator(const Options& options,
                                                             std::unique_ptr<Communicator> flat,
                                                             const HostGroup& group) {
  const bool sharded = options.at("form").get<std::string>() == "sharded";
  const int ranks_per_node = options.at("ranks_per_node").get<int>();
  const int node = ranks_per_node > 0 ? group.rank() / ranks_per_node : group.first_rank_on_node();
  Levels levels{flat->split(node, group.rank()), nullptr, flat->split(node, group.rank())};
  const int64_t here = levels.first->size(), most = group.max(here), least = -group.max(-here);
  if (sharded && most != least)
    throw RefusedByAllRanks(
        "transport hierarchical(form=sharded) needs equally many ranks on every node, here are " +
        std::to_string(least) + " to " + std::to_string(most) +
        "; use form=leader or other numbers of ranks");
  const int peers = levels.first->rank();  // ranks with the same local rank are peers
  levels.across = flat->split(sharded || peers == 0 ? peers : -1, group.rank());
  return std::make_unique<Hierarchical>(std::move(flat), std::move(levels), sharded,
                                        to_text(Choice{"hierarchical", options}));
}

}  // namespace shardmark

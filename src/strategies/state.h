// Whole tensors out of the parts that ranks hold, and back: strategy.h, Note [State].
#pragma once

#include "strategies/flat.h"
#include "strategies/strategy.h"

namespace shardmark {

// This rank's share of a training state. A layout with one owner: every rank holds everything.
struct HeldState {
  Model& model;
  Communicator& all;
  Communicator& comm;  // the ranks over which the layout is cut
  const std::vector<laws::GroupLayout>& layout;
  Parts parameters;
  Optimizer*
      optimizer;  // over the parts that are not empty, or one like the flat model; nullptr: weights only

  void visit(const StateVisitor& visit) const;
  void load(const StateReader& read) const;

 private:
  struct Kind {
    std::string prefix;
    Parts parts;
  };
  std::vector<Kind> kinds() const;
  at::Tensor gathered(size_t group, const std::vector<at::Tensor>& parts) const;
};

// Rank 0's value for all. Collective.
void broadcast_value(Communicator& comm, const at::Tensor& value);

// What forward changes on each rank by itself: rank 0's for all. Before evaluation. Collective.
void broadcast_buffers(Model& model, Communicator& comm);

}  // namespace shardmark

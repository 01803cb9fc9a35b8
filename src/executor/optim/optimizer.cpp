// Looks up an optimizer by name; each lives in a file of its own.
#include "executor/optim/optimizer.h"

#include "base/registry.h"
#include "executor/optim/entry.h"

namespace shardmark {

std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, std::vector<FlatPiece> pieces,
                                          at::Device device) {
  const meter::Scope scope(MemoryUse::optimizer);
  return make_in_scope(choice, std::move(pieces), device);
}

std::unique_ptr<Optimizer> make_in_scope(const Choice& choice, std::vector<FlatPiece> pieces,
                                         at::Device device) {
  return Registry<OptimizerEntry>::instance()
      .get(choice.name, "optimizer")
      .make(choice.options, std::move(pieces), device);
}

std::vector<at::Tensor> zeros_like_pieces(const std::vector<FlatPiece>& pieces) {
  std::vector<at::Tensor> state;
  for (const auto& piece : pieces) state.push_back(at::zeros_like(piece.parameters));
  return state;
}

}  // namespace shardmark

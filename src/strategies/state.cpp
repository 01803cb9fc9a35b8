// Gathers and deals one group at a time.
#include "strategies/state.h"

#include "strategies/flat.h"
#include "strategies/moves.h"

namespace shardmark {
namespace {

constexpr const char* kOptimizer = "optimizer.";
constexpr const char* kNumUpdates = "optimizer.num_updates";

// The optimizer's pieces as parts: it has none for what is empty.
Parts as_parts(const HeldState& held, const std::vector<at::Tensor>& pieces) {
  if (pieces.size() == 1 && pieces.front().numel() == laws::total_numel(held.layout))
    return one_piece_each(flat_groups(held.model, held.layout, pieces.front()));
  Parts parts = held.parameters;
  size_t next = 0;
  for (auto& group : parts)
    for (auto& part : group)
      if (part.numel() > 0) part = pieces.at(next++);
  ENSURE(next == pieces.size(), "pieces of the optimizer that are not parameters' parts");
  return parts;
}

at::Tensor on_cpu(const at::Tensor& value) {
  return value.to(at::kCPU, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

std::vector<HeldState::Kind> HeldState::kinds() const {
  std::vector<Kind> kinds = {{"", parameters}};
  if (optimizer != nullptr)
    for (const auto& [kind, pieces] : optimizer->state())
      kinds.push_back({kOptimizer + kind + ".", as_parts(*this, pieces)});
  return kinds;
}

at::Tensor HeldState::gathered(size_t group, const std::vector<at::Tensor>& parts) const {
  if (layout[group].ranks == 1 && parts.size() == 1) return parts.front();
  std::vector<at::Tensor> own;
  for (const auto& part : parts) own.push_back(part.to(comm.device()));
  at::Tensor whole = at::empty({layout[group].numel}, own.front().options());
  Works works = start_gather(comm, layout[group], whole, own);
  wait_all(works);
  return whole;
}

void HeldState::visit(const StateVisitor& visit) const {
  for (const auto& [prefix, parts] : kinds()) {
    for (size_t g = 0; g < layout.size(); ++g) {
      const at::Tensor whole = gathered(g, parts[g]);
      const auto& specs = model.table().groups[g].parameters;
      for (size_t i = 0; visit && i < specs.size(); ++i)
        visit(prefix + specs[i].name,
              on_cpu(whole.narrow(0, layout[g].offsets[i], specs[i].numel()).view(specs[i].shape)));
    }
  }
  if (!visit) return;
  for (const auto& [name, value] : model.buffers()) visit(name, on_cpu(value));
  if (optimizer != nullptr && optimizer->num_updates().defined())
    visit(kNumUpdates, on_cpu(optimizer->num_updates()));
}

void HeldState::load(const StateReader& read) const {
  const bool reads = all.rank() == 0;
  for (const auto& [prefix, parts] : kinds()) {
    for (size_t g = 0; g < layout.size(); ++g) {
      const at::Tensor whole = at::zeros({layout[g].numel}, parts[g].front().options().device(comm.device()));
      const auto& specs = model.table().groups[g].parameters;
      for (size_t i = 0; reads && i < specs.size(); ++i)
        whole.narrow(0, layout[g].offsets[i], specs[i].numel())
            .view(specs[i].shape)
            .copy_(read(prefix + specs[i].name));
      all.broadcast(whole, 0).wait();
      const int64_t rank = layout[g].ranks == 1 ? 0 : comm.rank();
      for (size_t piece = 0; piece < parts[g].size(); ++piece) {
        const laws::Range own = layout[g].owned(piece, rank);
        parts[g][piece].copy_(whole.narrow(0, own.begin, own.numel));
      }
    }
  }
  if (reads)
    for (const auto& [name, value] : model.buffers()) value.copy_(read(name));
  broadcast_buffers(model, all);
  if (optimizer == nullptr || !optimizer->num_updates().defined()) return;
  if (reads) optimizer->num_updates().copy_(read(kNumUpdates));
  broadcast_value(all, optimizer->num_updates());
}

void broadcast_value(Communicator& comm, const at::Tensor& value) {
  const at::Tensor on_device = value.to(comm.device()).view(-1);
  comm.broadcast(on_device, 0).wait();
  value.copy_(on_device.view(value.sizes()));
}

void broadcast_buffers(Model& model, Communicator& comm) {
  for (const auto& [name, value] : model.buffers()) broadcast_value(comm, value);
}

}  // namespace shardmark

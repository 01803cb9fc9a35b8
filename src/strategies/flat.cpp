// Allocation, binding and re-aiming of flat memory.
#include "strategies/flat.h"

#include <ATen/ops/_foreach_norm.h>

#include <algorithm>

#include "device/meter.h"
#include "models/initial.h"

namespace shardmark {
namespace {

at::Tensor view_of(const at::Tensor& whole, const laws::GroupLayout& layout, size_t index,
                   const laws::ParameterSpec& spec) {
  // variable_data(): an own version counter, so that refilling the memory between forward and backward is no
  // "modification".
  return whole.narrow(0, layout.offsets[index], spec.numel()).view(spec.shape).variable_data();
}

}  // namespace

FlatModel allocate_flat(Model& model, Communicator& comm, const std::vector<laws::GroupLayout>& layout,
                        MemoryUse use, at::ScalarType dtype) {
  const meter::Scope scope(use);
  const at::Tensor buffer = comm.allocate(laws::total_numel(layout), dtype);
  return {buffer, flat_groups(model, layout, buffer)};
}

std::vector<at::Tensor> flat_groups(const Model& model, const std::vector<laws::GroupLayout>& layout,
                                    const at::Tensor& buffer) {
  std::vector<at::Tensor> groups(layout.size());
  int64_t begin = 0;
  for (size_t group : laws::backward_order(model.table())) {
    groups[group] = buffer.narrow(0, begin, layout[group].numel);
    begin += layout[group].numel;
  }
  return groups;
}

Parts allocate_owned(Communicator& comm, const std::vector<laws::GroupLayout>& layout, MemoryUse use,
                     at::ScalarType dtype) {
  const meter::Scope scope(use);
  const at::Tensor buffer = comm.allocate(laws::owned_numel(layout, comm.rank()), dtype);
  Parts parts;
  int64_t begin = 0;
  for (const auto& place : layout) {
    parts.emplace_back();
    for (size_t piece = 0; piece < place.pieces.size(); ++piece) {
      const int64_t numel = place.owned(piece, comm.rank()).numel;
      parts.back().push_back(buffer.narrow(0, begin, numel));
      begin += numel;
    }
  }
  return parts;
}

Parts one_piece_each(const std::vector<at::Tensor>& groups) {
  Parts parts;
  for (const auto& group : groups) parts.push_back({group});
  return parts;
}

std::vector<at::Tensor> concatenated(const Parts& parts) {
  std::vector<at::Tensor> all;
  for (const auto& group : parts)
    for (const auto& part : group)
      if (part.numel() > 0) all.push_back(part);
  return all;
}

void bind_parameters(Model& model, size_t group, const laws::GroupLayout& layout, const at::Tensor& whole) {
  const auto& specs = model.table().groups[group].parameters;
  for (size_t i = 0; i < specs.size(); ++i)
    model.parameter(group, i) = view_of(whole, layout, i, specs[i]).requires_grad_(true);
}

void bind_gradients(Model& model, size_t group, const laws::GroupLayout& layout, const at::Tensor& whole) {
  const auto& specs = model.table().groups[group].parameters;
  for (size_t i = 0; i < specs.size(); ++i)
    model.parameter(group, i).mutable_grad() = view_of(whole, layout, i, specs[i]);
}

void fill_initial(const Model& model, size_t group, const laws::GroupLayout& layout, laws::Range range,
                  int64_t seed, const at::Tensor& part) {
  const auto& specs = model.table().groups[group].parameters;
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t begin = std::max(layout.offsets[i], range.begin);
    const int64_t end = std::min(layout.offsets[i] + specs[i].numel(), range.begin + range.numel);
    if (begin >= end) continue;
    const at::Tensor value = initial_value(specs[i], seed, part.scalar_type()).view(-1);
    part.narrow(0, begin - range.begin, end - begin)
        .copy_(value.narrow(0, begin - layout.offsets[i], end - begin));
  }
}

void fill_initial(const Model& model, size_t group, const laws::GroupLayout& layout, int64_t rank,
                  int64_t seed, const std::vector<at::Tensor>& parts) {
  for (size_t piece = 0; piece < parts.size(); ++piece)
    fill_initial(model, group, layout, layout.owned(piece, rank), seed, parts[piece]);
}

at::Tensor squares(const std::vector<at::Tensor>& tensors, at::Device device) {
  // In the tensors' own type by chunks, whose squares are added in double: a norm in double would copy all of
  // them.
  constexpr int64_t kChunk = 1 << 20;
  std::vector<at::Tensor> chunks;
  for (const auto& tensor : tensors)
    if (tensor.numel() > 0)
      for (auto& chunk : tensor.split(kChunk)) chunks.push_back(std::move(chunk));
  if (chunks.empty()) return at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  return at::stack(at::_foreach_norm(chunks)).to(at::kDouble).square().sum();
}

AimedGroup::AimedGroup(int64_t numel, at::ScalarType dtype, at::Device device) {
  const size_t bytes = static_cast<size_t>(numel) * at::elementSize(dtype);
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, device),
                             /*allocator=*/nullptr,
                             /*resizable=*/false);
  whole_ = at::empty({0}, at::TensorOptions(device).dtype(dtype)).set_(storage, 0, {numel}, {1});
}

void AimedGroup::aim(const at::Tensor& slot) {
  whole_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(slot.data_ptr(), slot.device()));
}

}  // namespace shardmark

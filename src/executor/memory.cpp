// Allocates buffers, makes parameters views of them, and fills in initial values.
#include "executor/memory.h"

#include <ATen/ops/_foreach_norm.h>

#include <algorithm>

#include "device/meter.h"
#include "models/initial.h"

namespace shardmark {
namespace {

using strategies::Element;
using strategies::Use;

at::ScalarType type_of(Element element, const Precision& types) {
  switch (element) {
    case Element::master:
      return types.master;
    case Element::compute:
      return types.compute;
    case Element::reduce:
      return types.reduce;
    case Element::bf16:
      return at::kBFloat16;
    case Element::fp16:
      return at::kHalf;
    case Element::fp32:
      return at::kFloat;
    case Element::fp64:
      return at::kDouble;
    case Element::int32:
      return at::kInt;
    case Element::int64:
      return at::kLong;
  }
  return types.master;
}

MemoryUse memory_use(Use use) {
  return use == Use::parameters  ? MemoryUse::parameters
         : use == Use::gradients ? MemoryUse::gradients
                                 : MemoryUse::transient;
}

at::Tensor view_of(const at::Tensor& whole, const specs::GroupLayout& layout, size_t index,
                   const specs::ParameterSpec& spec) {
  // variable_data() gives the view its own version counter. Otherwise autograd would take refilling the
  // memory between forward and backward for a modification, and throw.
  return whole.narrow(0, layout.offsets[index], spec.numel()).view(spec.shape).variable_data();
}

// Makes the parameters of a group leaves that view `whole` ([layout.numel]).
void bind_parameters(Model& model, size_t group, const specs::GroupLayout& layout, const at::Tensor& whole) {
  const auto& specs = model.table().groups[group].parameters;
  for (size_t i = 0; i < specs.size(); ++i)
    model.parameter(group, i) = view_of(whole, layout, i, specs[i]).requires_grad_(true);
}

// Does the same for their gradients, into which backward then accumulates. Parameters must be bound before.
void bind_gradients(Model& model, size_t group, const specs::GroupLayout& layout, const at::Tensor& whole) {
  const auto& specs = model.table().groups[group].parameters;
  for (size_t i = 0; i < specs.size(); ++i)
    model.parameter(group, i).mutable_grad() = view_of(whole, layout, i, specs[i]);
}

// Writes the initial values of the range `range` of a group to `part` ([range.numel]). A parameter's values
// are always drawn as a whole and then cut, so that they do not depend on how it is sharded.
void fill_part(const Model& model, size_t group, const specs::GroupLayout& layout, specs::Range range,
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

}  // namespace

// The storage has a size but no memory until bind(). It is not resizable, because it never owns what it
// points to.
ReboundGroup::ReboundGroup(int64_t numel, at::ScalarType dtype, at::Device device) {
  const size_t bytes = static_cast<size_t>(numel) * at::elementSize(dtype);
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, device),
                             /*allocator=*/nullptr,
                             /*resizable=*/false);
  whole_ = at::empty({0}, at::TensorOptions(device).dtype(dtype)).set_(storage, 0, {numel}, {1});
}

void ReboundGroup::bind(const at::Tensor& slot) {
  whole_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(slot.data_ptr(), slot.device()));
}

ProgramMemory::ProgramMemory(const strategies::Program& program, Model& model, Communicator& comm,
                             const Precision& types)
    : types_(types),
      squares_(at::zeros({1}, at::TensorOptions(comm.device()).dtype(at::kDouble))),
      parameters_(program.layout.size()),
      gradients_(program.layout.size()) {
  for (const strategies::Buffer& buffer : program.buffers) {
    const meter::Scope scope(memory_use(buffer.use));
    buffers_.push_back(comm.allocate(buffer.numel, type_of(buffer.element, types)));
  }
  if (program.inside_block.buffer >= 0) inside_block_ = at(program.inside_block).view(at::kByte);
  for (size_t group = 0; group < program.layout.size(); ++group) {
    const specs::GroupLayout& layout = program.layout[group];
    const auto place = [&](const strategies::Slice& fixed, std::optional<ReboundGroup>& rebound) {
      if (fixed.buffer >= 0) return at(fixed);
      return rebound.emplace(layout.numel, types.compute, model.device()).whole();
    };
    bind_parameters(model, group, layout, place(program.parameters[group], parameters_[group]));
    bind_gradients(model, group, layout, place(program.gradients[group], gradients_[group]));
  }
}

at::Tensor ProgramMemory::at(const strategies::Slice& slice) const {
  if (slice == strategies::kSquares) return squares_;
  if (slice.buffer < 0) return {};
  return buffers_[static_cast<size_t>(slice.buffer)].narrow(0, slice.begin, slice.numel);
}

at::ScalarType ProgramMemory::type(Element element) const { return type_of(element, types_); }

std::pair<at::Tensor, at::Tensor> ProgramMemory::inside_block(const specs::BlockCall& call,
                                                              const Communicator& process_group) const {
  const at::ScalarType type = type_of(call.element, types_);
  const at::Tensor all =
      inside_block_.narrow(0, 0, call.numel * static_cast<int64_t>(at::elementSize(type))).view(type);
  const int64_t part = call.numel / process_group.size();
  const auto own = [&] { return all.narrow(0, process_group.rank() * part, part); };
  if (call.what == specs::Collective::all_gather) return {all, own()};
  if (call.what == specs::Collective::reduce_scatter) return {own(), all};
  return {all, all};
}

void fill_initial(const strategies::Program& program, const Model& model, const ProgramMemory& memory,
                  int64_t rank, int64_t seed) {
  for (size_t group = 0; group < program.layout.size(); ++group) {
    const specs::GroupLayout& layout = program.layout[group];
    for (size_t segment = 0; segment < program.owned[group].size(); ++segment)
      fill_part(model, group, layout, layout.owned(segment, rank), seed,
                memory.at(program.owned[group][segment]));
  }
}

at::Tensor squares(const std::vector<at::Tensor>& tensors, at::Device device) {
  // Norms are computed chunk by chunk in the tensors' own type, and their squares are added in double. A norm
  // in double would copy all tensors.
  constexpr int64_t kChunk = 1 << 20;
  std::vector<at::Tensor> chunks;
  for (const auto& tensor : tensors)
    if (tensor.numel() > 0)
      for (auto& chunk : tensor.split(kChunk)) chunks.push_back(std::move(chunk));
  if (chunks.empty()) return at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  const at::ScalarType type = chunks.front().scalar_type();  // a norm in 16 bits would be rounded too much
  const auto precise = at::isReducedFloatingType(type) ? std::optional(at::kFloat) : std::nullopt;
  const auto norms = at::_foreach_norm(chunks, 2, precise);
  return at::stack(norms).to(at::kDouble).square().sum();
}

}  // namespace shardmark

// Builds a model from its table: parameters on the meta device, buffers in memory, and blocks from the
// registry.
#include "models/model.h"

#include "models/attention.h"
#include "models/initial.h"

namespace shardmark {

Batch Batch::on(at::Device device) const {
  Batch there = *this;
  for (at::Tensor* tensor : {&there.inputs, &there.targets, &there.positions})
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  return there;
}

Batch Model::prepared(const Batch& batch) const {
  Batch ready = batch.on(device_);
  if (ready.inputs.is_floating_point()) ready.inputs = ready.inputs.to(dtype_);
  const specs::Split& split = table_.split;
  if (!ready.masks_documents && split.context == 1) return ready;  // attention is plainly causal
  const int64_t length = ready.inputs.size(1);
  const at::Tensor all = at::arange(length, ready.inputs.options()).unsqueeze(0);
  const at::Tensor tokens = own_tokens(split, all);
  if (split.context > 1) {
    ready.inputs = own_tokens(split, ready.inputs);
    if (ready.targets.defined()) ready.targets = own_tokens(split, ready.targets);
    ready.positions =
        ready.positions.defined() ? own_tokens(split, ready.positions) : tokens.expand(ready.inputs.sizes());
  }
  if (!needs_mask(*this, ready)) return ready;
  const at::Tensor position_ids = ready.masks_documents ? ready.positions : tokens;
  ready.mask = attention_mask(tokens, position_ids, length, dtype_);
  return ready;
}

Model::Model(specs::ModelTable table, at::ScalarType dtype, at::Device device)
    : gpu_forms(device.is_cuda()),
      loss_gradient(
          [device](at::ScalarType type) { return at::ones({}, at::TensorOptions(device).dtype(type)); }),
      dtype_(dtype),
      device_(device) {
  const auto meta = at::TensorOptions().dtype(dtype).device(at::kMeta);
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters)
      ENSURE(parameters_.emplace(spec.name, at::empty(spec.shape, meta)).second,
             "two parameters " + spec.name);
  regroup(std::move(table));
  for (const auto& spec : table_.buffers)
    buffers_[spec.name] = at::full(spec.shape, spec.value, at::TensorOptions().dtype(dtype).device(device));
}

void Model::regroup(specs::ModelTable table) {
  table_ = std::move(table);
  by_group_.clear();
  for (const auto& group : table_.groups) {
    by_group_.emplace_back();
    for (const auto& spec : group.parameters) by_group_.back().push_back(&parameter(spec.name));
  }
}

void Model::keep(const specs::StageTable& part) {
  std::vector<Block> blocks;
  for (const specs::Chunk& chunk : part.chunks)
    for (int64_t block = 0; block < chunk.end - chunk.begin; ++block)
      blocks.push_back(std::move(blocks_[static_cast<size_t>(chunk.first_block + block)]));
  blocks_ = std::move(blocks);
  regroup(*part.table);
  std::map<std::string, at::Tensor> buffers;
  for (const auto& spec : table_.buffers) buffers.insert(buffers_.extract(spec.name));
  buffers_ = std::move(buffers);
}

std::vector<at::Tensor> Model::parameters_of_block(int64_t block) {
  std::vector<at::Tensor> all;
  for (size_t group = 0; group < table_.groups.size(); ++group)
    if (table_.groups[group].first_block <= block && block <= table_.groups[group].last_block)
      for (size_t i = 0; i < by_group_[group].size(); ++i) all.push_back(parameter(group, i));
  return all;
}

at::Tensor& Model::parameter(const std::string& name) {
  const auto found = parameters_.find(name);
  ENSURE(found != parameters_.end(), "the table has no parameter " + name);
  return found->second;
}

at::Tensor& Model::buffer(const std::string& name) {
  const auto found = buffers_.find(name);
  ENSURE(found != buffers_.end(), "the table has no buffer " + name);
  return found->second;
}

std::unique_ptr<Model> make_model(const Choice& choice, at::ScalarType dtype, at::Device device) {
  auto model = std::make_unique<Model>(*specs::model_table(choice), dtype, device);
  Registry<ModelEntry>::instance().get(choice.name, "model").add_blocks(*model, choice.options);
  const auto& declared = model->table().blocks;
  ENSURE(model->blocks().size() == declared.size(), choice.name + ": blocks differ from the table");
  for (size_t b = 0; b < declared.size(); ++b)
    ENSURE(model->blocks()[b].name == declared[b].name, "the table has no block " + model->blocks()[b].name);
  return model;
}

std::vector<double> expert_load(const Model& model) {
  if (!model.expert_load.defined()) return {};
  const at::Tensor host = model.expert_load.cpu().to(at::kDouble);
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

void materialize(Model& model, int64_t seed) {
  for (const auto& group : model.table().groups)
    for (const auto& spec : group.parameters)
      model.parameter(spec.name) =
          initial_value(spec, seed, model.dtype()).to(model.device()).set_requires_grad(true);
}

}  // namespace shardmark

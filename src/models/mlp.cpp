// mlp: one block per linear layer.
#include "models/layers.h"

namespace shardmark::mlp {
namespace {

// With tensor parallelism, layers are alternately the first and the last of a region: the first is sharded by
// outputs, the last by inputs.
void add_mlp_blocks(Model& model, const Options& options) {
  const auto layers = options.at("layers").get<int64_t>(), classes = options.at("classes").get<int64_t>();
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const auto linear = layer<Linear>(model, name);
    const auto last = layer<LastLinear>(model, name);
    const auto product = [=, &model, enters = i > 0, leaves = i % 2 == 1](const at::Tensor& x) {
      return leaves ? last(x) : linear(enters ? copy_to_tensor_region(model, x) : LayerInput(x));
    };
    if (i < layers - 1)
      model.add_block(
          {name, [=](const at::Tensor& x, const Batch&) { return at::gelu(product(x), "tanh"); }});
    else
      model.add_block({name, [=, &model, by_classes = i % 2 == 0](const at::Tensor& x, const Batch& batch) {
                         return by_classes && model.table().split.tensor > 1
                                    ? loss_over_sharded_vocabulary(model, product(x), batch, classes)
                                    : loss_or_logits(product(x), batch);
                       }});
  }
}

const Registration<ModelEntry> registered{"mlp", {"linear layers with GELU", add_mlp_blocks}};

}  // namespace
}  // namespace shardmark::mlp

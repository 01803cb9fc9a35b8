// mlp: a block per linear layer.
#include "models/layers.h"

namespace shardmark {
namespace {

void add_mlp_blocks(Model& model, const Options& options) {
  const auto layers = options.at("layers").get<int64_t>();
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const auto linear = layer<Linear>(model, name);
    if (i < layers - 1)
      model.add_block({name, [=](const at::Tensor& x, const Batch&) { return at::gelu(linear(x), "tanh"); }});
    else
      model.add_block(
          {name, [=](const at::Tensor& x, const Batch& batch) { return loss_or_logits(linear(x), batch); }});
  }
}

const Registration<ModelEntry> registered{"mlp", {"linear layers with GELU", add_mlp_blocks}};

}  // namespace
}  // namespace shardmark

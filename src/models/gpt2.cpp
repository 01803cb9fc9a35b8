// gpt2 and its sizes: embedding, transformer blocks, head. Between blocks the residual stream is [B T, C].
// B batch, T tokens, H heads, D channels per head, C = H D width, V vocabulary.
#include "models/attention.h"
#include "models/layers.h"

namespace shardmark {
namespace {

// Zeroes a share of the elements and scales the rest up, while the model draws.
struct Dropout {
  const Model& model;
  double share;
  double now() const { return model.draws ? share : 0.0; }
  at::Tensor operator()(const at::Tensor& x) const { return now() > 0 ? at::dropout(x, share, true) : x; }
};

Block embedding(Model& model, double dropout) {
  const at::Tensor& tokens = model.parameter("wte.weight");     // [V, C]
  const at::Tensor& positions = model.parameter("wpe.weight");  // [T, C]
  const Dropout drop{model, dropout};
  return {"embedding", [&tokens, &positions, drop](const at::Tensor& ids, const Batch& batch) {
            const at::Tensor position = batch.positions.defined() ? at::embedding(positions, batch.positions)
                                                                  : positions.narrow(0, 0, ids.size(1));
            return drop(at::add(at::embedding(tokens, ids), position).flatten(0, 1));
          }};
}

struct Attention {
  Projection qkv, out;
  int64_t heads;
  Dropout drop;

  at::Tensor operator()(const at::Tensor& x, const Batch& batch) const {
    const auto split = qkv(x).view({batch.inputs.size(0), batch.inputs.size(1), 3, heads, -1}).unbind(2);
    const auto by_head = [&](int i) { return split[i].transpose(1, 2); };  // [B, H, T, D]
    const at::Tensor y = causal_attention(by_head(0), by_head(1), by_head(2), batch, drop.now());
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }
};

Block transformer(Model& model, const std::string& name, int64_t heads, double dropout) {
  const auto ln_1 = layer<LayerNorm>(model, name + ".ln_1"), ln_2 = layer<LayerNorm>(model, name + ".ln_2");
  const Attention attention{layer<Projection>(model, name + ".attn.c_attn"),
                            layer<Projection>(model, name + ".attn.c_proj"),
                            heads,
                            {model, dropout}};
  const auto up = layer<Projection>(model, name + ".mlp.c_fc"),
             down = layer<Projection>(model, name + ".mlp.c_proj");
  return {name, [=](const at::Tensor& x, const Batch& batch) {
            const at::Tensor h = x + attention.drop(attention(ln_1(x), batch));
            return h + attention.drop(down(at::gelu(up(ln_2(h)), "tanh")));
          }};
}

Block head(Model& model) {
  const auto ln_f = layer<LayerNorm>(model, "ln_f");
  const at::Tensor& tokens = model.parameter("wte.weight");
  return {"head", [&model, ln_f, &tokens](const at::Tensor& x, const Batch& batch) {
            return language_head(model, ln_f(x), tokens, batch);
          }};
}

void add_gpt2_blocks(Model& model, const Options& options) {
  const auto dropout = options.at("dropout").get<double>();
  model.draws = dropout > 0;
  model.add_block(embedding(model, dropout));
  for (int64_t i = 0; i < options.at("layers").get<int64_t>(); ++i)
    model.add_block(
        transformer(model, "h." + std::to_string(i), options.at("heads").get<int64_t>(), dropout));
  model.add_block(head(model));
}

const ModelEntry kEntry{"transformer blocks between a tied embedding and its logits", add_gpt2_blocks};
const Registration<ModelEntry> gpt2{"gpt2", kEntry};
const Registration<ModelEntry> gpt2_medium{"gpt2_medium", kEntry};
const Registration<ModelEntry> gpt2_large{"gpt2_large", kEntry};
const Registration<ModelEntry> gpt2_xl{"gpt2_xl", kEntry};

}  // namespace
}  // namespace shardmark

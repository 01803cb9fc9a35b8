// gpt2 and its sizes: embedding, transformer blocks, head. Between blocks the residual stream is [B T, C]. B:
// batch, T: tokens, H: heads, D: channels per head, C = H D: width, V: vocabulary.
#include "models/attention.h"
#include "models/layers.h"

namespace shardmark::gpt2 {
namespace {

// Zeroes a share of the elements and scales up the rest, if the model draws random numbers at all.
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
  return {"embedding", [&model, &tokens, &positions, drop](const at::Tensor& ids, const Batch& batch) {
            const at::Tensor embeddings = embedded(model, tokens, ids);  // [B T, C], or a part of the tokens
            if (!batch.positions.defined() && embeddings.size(0) == ids.numel()) {
              const at::Tensor of_samples = embeddings.view({ids.size(0), ids.size(1), -1});
              return drop(at::add(of_samples, positions.narrow(0, 0, ids.size(1))).flatten(0, 1));
            }
            const at::Tensor position_ids = batch.positions.defined()
                                                ? batch.positions
                                                : at::arange(ids.size(1), ids.options()).expand_as(ids);
            return drop(embeddings + at::embedding(positions, own_rows(model, position_ids.flatten())));
          }};
}

// On a tensor-parallel rank, H is its share of the heads.
struct Attention {
  Projection qkv;
  LastProjection out;
  int64_t head_width;
  Dropout drop;

  at::Tensor operator()(const LayerInput& in, const Batch& batch) const {
    const std::vector<at::Tensor> parts = qkv.in_three(in);  // queries, keys and values: [B T, C] each
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({batch.inputs.size(0), batch.inputs.size(1), -1, head_width});  // [B, T, H, D]
    };
    const at::Tensor y = causal_attention(drop.model, by_head(parts[0]), by_head(parts[1]), by_head(parts[2]),
                                          batch, drop.now());
    return out(y.reshape({parts[0].size(0), -1}));
  }
};

Block transformer(Model& model, const std::string& name, int64_t head_width, double dropout) {
  const auto ln_1 = layer<LayerNorm>(model, name + ".ln_1"), ln_2 = layer<LayerNorm>(model, name + ".ln_2");
  const Attention attention{layer<Projection>(model, name + ".attn.c_attn"),
                            layer<LastProjection>(model, name + ".attn.c_proj"),
                            head_width,
                            {model, dropout}};
  const auto up = layer<Projection>(model, name + ".mlp.c_fc");
  const auto down = layer<LastProjection>(model, name + ".mlp.c_proj");
  return {name, [=, &model](const at::Tensor& x, const Batch& batch) {
            const auto [in, for_attention] = ln_1.of_sum(x, {});
            const at::Tensor attended = attention(copy_to_tensor_region(model, for_attention), batch);
            const auto [h, for_mlp] = ln_2.of_sum(in, attention.drop(attended));
            return h + attention.drop(down(up.gelu(copy_to_tensor_region(model, for_mlp))));
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
  model.has_dropout = model.draws = dropout > 0;
  model.add_block(embedding(model, dropout));
  const auto width = options.at("width").get<int64_t>(), heads = options.at("heads").get<int64_t>();
  for (int64_t i = 0; i < options.at("layers").get<int64_t>(); ++i)
    model.add_block(transformer(model, "h." + std::to_string(i), width / heads, dropout));
  model.add_block(head(model));
}

const ModelEntry kEntry{"transformer blocks between a tied embedding and its logits", add_gpt2_blocks};
const Registration<ModelEntry> gpt2{"gpt2", kEntry};
const Registration<ModelEntry> gpt2_medium{"gpt2_medium", kEntry};
const Registration<ModelEntry> gpt2_large{"gpt2_large", kEntry};
const Registration<ModelEntry> gpt2_xl{"gpt2_xl", kEntry};

}  // namespace
}  // namespace shardmark::gpt2

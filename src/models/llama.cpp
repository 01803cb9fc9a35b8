// llama and its sizes: embedding, transformer blocks, head. Between blocks the residual stream is [B T, C].
// B: batch, T: tokens, H: heads of queries, K: heads of keys and values, D: channels per head, C = H D:
// width, V: vocabulary.
#include "models/llama.h"

#include "models/attention.h"
#include "models/layers.h"
#include "models/llama_layers.h"

namespace shardmark {
namespace {

struct Attention {
  Matrix q, k, v, out;
  Rotary rotary;
  int64_t head_width;
  const Model& model;

  at::Tensor operator()(const at::Tensor& x, const Batch& batch) const {
    const auto by_head = [&](const Matrix& matrix) {  // [B, T, H or K, D]
      return matrix(x).view({batch.inputs.size(0), batch.inputs.size(1), -1, head_width});
    };
    const at::Tensor queries = rotary(by_head(q), batch.positions);
    const at::Tensor keys = rotary(by_head(k), batch.positions);
    const at::Tensor y = causal_attention(model, queries, keys, by_head(v), batch);
    return leave_region(model, out(y.reshape({x.size(0), -1})));
  }
};

Block transformer(Model& model, const std::string& name, const Rotary& rotary, int64_t head_width,
                  const Mlp& mlp) {
  const auto norm = [&](const char* of) {
    return RmsNorm{model, model.parameter(name + "." + of + ".weight")};
  };
  const auto matrix = [&](const char* of) {
    return Matrix{model.parameter(name + "." + of + ".weight"), model};
  };
  const RmsNorm before_attention = norm("input_layernorm"), before_mlp = norm("post_attention_layernorm");
  const Attention attention{matrix("self_attn.q_proj"),
                            matrix("self_attn.k_proj"),
                            matrix("self_attn.v_proj"),
                            matrix("self_attn.o_proj"),
                            rotary,
                            head_width,
                            model};
  return {name, [=, &model](const at::Tensor& x, const Batch& batch) {
            const at::Tensor h = x + attention(enter_region(model, before_attention(x)), batch);
            return h + leave_region(model, mlp(enter_region(model, before_mlp(h))));
          }};
}

}  // namespace

Mlp swiglu_mlp(Model& model, const std::string& name) {
  const auto matrix = [&](const char* of) {
    return Matrix{model.parameter(name + "." + of + ".weight"), model};
  };
  return [gate = matrix("gate_proj"), up = matrix("up_proj"),
          down = matrix("down_proj")](const at::Tensor& x) { return down(swiglu(gate(x), up(x))); };
}

void add_llama_blocks(Model& model, const specs::LlamaShape& shape,
                      const std::function<Mlp(const std::string&)>& mlp) {
  const at::Tensor& tokens = model.parameter("model.embed_tokens.weight");  // [V, C]
  const Rotary rotary(shape.sequence, shape.head_width(), shape.rope_theta, shape.rope_factor,
                      at::TensorOptions(model.device()).dtype(model.dtype()));
  if (!shape.tied)
    model.add_block({"embedding", [&model, &tokens](const at::Tensor& ids, const Batch&) {
                       return embedded(model, tokens, ids);
                     }});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    Block block = transformer(model, name, rotary, shape.head_width(), mlp(name));
    if (shape.tied && i == 0)
      block.forward = [&model, &tokens, layer = std::move(block.forward)](const at::Tensor& ids,
                                                                          const Batch& batch) {
        return layer(embedded(model, tokens, ids), batch);
      };
    model.add_block(std::move(block));
  }
  const RmsNorm norm{model, model.parameter("model.norm.weight")};
  const at::Tensor& head = shape.tied ? tokens : model.parameter("lm_head.weight");
  model.add_block({"head", [&model, norm, &head](const at::Tensor& x, const Batch& batch) {
                     return language_head(model, norm(x), head, batch);
                   }});
}

namespace {

void add_blocks(Model& model, const Options& options) {
  add_llama_blocks(model, specs::llama_shape(options),
                   [&](const std::string& layer) { return swiglu_mlp(model, layer + ".mlp"); });
}

const ModelEntry kLlama{"transformer blocks with rotary embedding, grouped-query attention and SwiGLU",
                        add_blocks};
const Registration<ModelEntry> registered{"llama", kLlama};
const Registration<ModelEntry> llama_1b{"llama_1b", kLlama};
const Registration<ModelEntry> llama_3b{"llama_3b", kLlama};
const Registration<ModelEntry> llama_8b{"llama_8b", kLlama};
const Registration<ModelEntry> llama_70b{"llama_70b", kLlama};

}  // namespace
}  // namespace shardmark

// The shape of a Llama, and the table of a model that is one but for its MLPs: tables (specs/) and blocks
// (models/) use the same numbers.
#pragma once

#include <functional>

#include "specs/model_table.h"

namespace shardmark::specs {

struct LlamaShape {
  int64_t layers, width, heads, kv_heads, inner, sequence, vocabulary;
  bool tied;  // the output layer is the token embedding
  double rope_theta, rope_factor;
  int64_t head_width() const { return width / heads; }
};

// Reads the shape from resolved options. UsageError, which begins with the name of the model: heads that do
// not divide the width, or kv_heads the heads; an odd head.
LlamaShape llama_shape(const Options& options, const std::string& model = "llama");

OptionTable llama_options(const LlamaShape& defaults);

// The MLP of a layer; numbers are of one token, as BlockSpec's are of a sample.
struct LlamaMlp {
  std::vector<ParameterSpec> parameters;
  double forward_flops, activation_elements, working_elements, indices = 0;
  double deferred_elements = 0;
};

// SwiGLU (Shazeer 2020) of projections called `name`.gate_proj, .up_proj and .down_proj, which starts with
// llama_residual().
LlamaMlp swiglu_mlp(const LlamaShape& shape, const std::string& name, int64_t inner);
// Standard deviation of what projects into the residual stream: two branches a layer add up.
double llama_residual(const LlamaShape& shape);

// mlp: by the layer's name, "model.layers.0".
ModelTable llama_table(const LlamaShape& shape, const std::function<LlamaMlp(const std::string&)>& mlp);

// FLOPs in words, after `mlp`: those of a token's matrix parameters in an MLP.
std::string llama_flops_formula(const std::string& mlp);

}  // namespace shardmark::specs

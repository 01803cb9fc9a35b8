// The shape of a Llama, and the table of a model that differs from a Llama only in its MLPs. Tables (specs/)
// and blocks (models/) use the same numbers.
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

// Reads the shape from resolved options. Throws UsageError, which begins with the name of the model, if the
// heads do not divide the width, the kv_heads do not divide the heads, or a head has an odd number of
// channels.
LlamaShape llama_shape(const Options& options, const std::string& model = "llama");

OptionTable llama_options(const LlamaShape& defaults);

// The MLP of a layer. The numbers are per token, those of BlockSpec are per sample. uncut: how many of the
// elements every tensor-parallel rank has. first_flops: of the products that read the MLP's input.
// num_logits: what a router says of a token, which enters the MLP's tensor-parallel region with it.
struct LlamaMlp {
  std::vector<ParameterSpec> parameters;
  double forward_flops, first_flops, activation_elements, working_elements, indices = 0;
  double deferred_elements = 0;
  double uncut_activations = 0, uncut_working = 0, uncut_deferred = 0;
  int64_t num_logits = 0;
  ProductInputs product_inputs = {};
};

// SwiGLU (Shazeer 2020), with projections `name`.gate_proj, .up_proj and .down_proj. The last one is
// initialized with llama_residual().
LlamaMlp swiglu_mlp(const LlamaShape& shape, const std::string& name, int64_t inner);
// The initial standard deviation of projections into the residual stream, to which each layer adds two
// branches.
double llama_residual(const LlamaShape& shape);

// `mlp` gets the name of a layer, such as "model.layers.0".
ModelTable llama_table(const LlamaShape& shape, const std::function<LlamaMlp(const std::string&)>& mlp);

// The formula of the FLOPs in words. `mlp` is the one for the matrix parameters that a token uses in an MLP.
std::string llama_flops_formula(const std::string& mlp);

}  // namespace shardmark::specs

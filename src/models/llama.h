// The blocks of a Llama, for all models that differ from it only in their MLPs.
#pragma once

#include "models/parallel.h"
#include "specs/models/llama.h"

namespace shardmark {

// Maps normed states [N, C] to what is added to the residual stream. With tensor parallelism it enters and
// leaves the region itself.
using Mlp = std::function<at::Tensor(const at::Tensor& normed)>;

// SwiGLU with the projections `name`.gate_proj, .up_proj and .down_proj, inside a tensor-parallel region.
using InnerMlp = std::function<at::Tensor(const LayerInput& in)>;
InnerMlp swiglu_mlp(Model& model, const std::string& name);

// `mlp` gets the name of a layer, such as "model.layers.0".
void add_llama_blocks(Model& model, const specs::LlamaShape& shape,
                      const std::function<Mlp(const std::string&)>& mlp);

}  // namespace shardmark

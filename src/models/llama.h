// The blocks of a Llama, for models that are one but for their MLPs.
#pragma once

#include "models/model.h"
#include "specs/models/llama.h"

namespace shardmark {

// Of normed states [N, C]: what is added to the residual stream.
using Mlp = std::function<at::Tensor(const at::Tensor& normed)>;

// SwiGLU between `name`.gate_proj, .up_proj and .down_proj.
Mlp swiglu_mlp(Model& model, const std::string& name);

// mlp: by the layer's name, "model.layers.0".
void add_llama_blocks(Model& model, const specs::LlamaShape& shape,
                      const std::function<Mlp(const std::string&)>& mlp);

}  // namespace shardmark

// The shape of a Llama: its table (specs/) and its blocks (models/) use the same numbers.
#pragma once

#include "schema/choice.h"

namespace shardmark::specs {

struct LlamaShape {
  int64_t layers, width, heads, kv_heads, inner, sequence, vocabulary;
  bool tied;  // the output layer is the token embedding
  double rope_theta, rope_factor;
  int64_t head_width() const { return width / heads; }
};

// Of resolved options. UsageError: heads that do not divide the width, or kv_heads the heads; an odd head.
LlamaShape llama_shape(const Options& options);

}  // namespace shardmark::specs

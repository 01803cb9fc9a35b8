// The shape of a GPT-2: its table, and what its layers can be cut into (analysis/predict/parallel3d.h).
#pragma once

#include "schema/choice.h"

namespace shardmark::specs {

struct Gpt2Shape {
  int64_t layers, width, heads, sequence, vocabulary;
};

// Of resolved options. UsageError: heads that do not divide the width.
Gpt2Shape gpt2_shape(const Options& options);

}  // namespace shardmark::specs

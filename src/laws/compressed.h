// How much of a bucket travels when it is compressed: the arithmetic that laws and reductions share.
#pragma once

#include "laws/layout.h"

namespace shardmark::laws {

// Top-k: elements of a bucket that a rank sends, an even number so that messages stay aligned.
int64_t num_selected(int64_t numel, double ratio);

}  // namespace shardmark::laws

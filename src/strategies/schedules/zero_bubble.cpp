// zero_bubble: 1f1b whose backward is split in two. Other ranks wait only for the gradients of activations
// (backward_input), so that the gradients of parameters (backward_weight) can be computed where the rank
// would otherwise be idle. Rank r delays backward_weight by r micro-batches. Every rank then keeps as many
// micro-batches in flight as the first rank of 1f1b does, which is `count`. Source: Qi et al., Zero Bubble
// Pipeline Parallelism, ICLR 2024, schedule ZB-H1 (figure 3 top).
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies::zero_bubble {
namespace {

PipelineOrder order(const Stage& stage, int64_t micro_batches) {
  const int64_t warm_up = std::min(stage.count - 1 - stage.index, micro_batches);
  const int64_t delay = std::min(stage.index, micro_batches);  // micro-batches
  PipelineOrder order;
  for (int64_t m = 0; m < warm_up; ++m) order.push_back({Pass::forward, 0, m});
  for (int64_t m = 0; m < micro_batches; ++m) {
    if (m + warm_up < micro_batches) order.push_back({Pass::forward, 0, m + warm_up});
    order.push_back({Pass::backward_input, 0, m});
    if (m >= delay) order.push_back({Pass::backward_weight, 0, m - delay});
  }
  for (int64_t m = micro_batches - delay; m < micro_batches; ++m)
    order.push_back({Pass::backward_weight, 0, m});
  return order;
}

const Registration<PipelineSchedule> registered{
    "zero_bubble", {"1f1b whose gradients of parameters fill the bubble (ZB-H1)", {}, order}};

}  // namespace
}  // namespace shardmark::strategies::zero_bubble

// zero_bubble: 1f1b with backward in two parts. Ranks wait for gradients of activations (backward_input)
// alone; gradients of parameters (backward_weight) fill what would be bubble. Rank r lets r of those wait,
// so that every rank has as many micro-batches in flight as the first one has in 1f1b: `count`.
// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, schedule ZB-H1 (figure 3 top).
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies {
namespace {

PipelineOrder order(const Stage& stage, int64_t micro_batches) {
  const int64_t warm_up = std::min(stage.count - 1 - stage.index, micro_batches);
  const int64_t delay = std::min(stage.index, micro_batches);  // of weights behind inputs
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
}  // namespace shardmark::strategies

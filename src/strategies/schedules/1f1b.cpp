// 1f1b: a rank has as many micro-batches under way as there are ranks from it to the last one, then turns to
// one forward, one backward. The bubble of gpipe, with the activations of at most `count` micro-batches.
// Source: Narayanan et al., ICML 2021 (PipeDream-Flush); Narayanan et al., SC 2021, figure 4 top.
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies {
namespace {

PipelineOrder order(const Stage& stage, int64_t micro_batches) {
  const int64_t warm_up = std::min(stage.count - 1 - stage.index, micro_batches);
  PipelineOrder order;
  for (int64_t m = 0; m < warm_up; ++m) order.push_back({Pass::forward, 0, m});
  for (int64_t m = warm_up; m < micro_batches; ++m) {
    order.push_back({Pass::forward, 0, m});
    order.push_back({Pass::backward, 0, m - warm_up});
  }
  for (int64_t m = micro_batches - warm_up; m < micro_batches; ++m) order.push_back({Pass::backward, 0, m});
  return order;
}

const Registration<PipelineSchedule> registered{
    "1f1b", {"one forward, one backward, once the pipeline is full", {}, order}};

}  // namespace
}  // namespace shardmark::strategies

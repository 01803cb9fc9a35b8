// 1f1b (one forward, one backward): a rank first passes one micro-batch forward for each rank behind it, and
// then alternates between one forward and one backward. The bubble is that of gpipe, but a rank keeps the
// activations of at most `count` micro-batches. Source: Narayanan et al., ICML 2021 (PipeDream-Flush);
// Narayanan et al., SC 2021, figure 4 top.
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies::one_f_one_b {
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
}  // namespace shardmark::strategies::one_f_one_b

// gpipe: all micro-batches forward, then all backward. Every rank keeps the activations of all micro-batches.
// Source: Huang et al. (GPipe), NeurIPS 2019, figure 2c. Backward begins with the last micro-batch there;
// here, as in torch, it begins with the first, so that gradients are added in the order of plain gradient
// accumulation.
#include "strategies/pipeline.h"

namespace shardmark::strategies::gpipe {
namespace {

PipelineOrder order(const Stage&, int64_t micro_batches) {
  PipelineOrder order;
  for (int64_t m = 0; m < micro_batches; ++m) order.push_back({Pass::forward, 0, m});
  for (int64_t m = 0; m < micro_batches; ++m) order.push_back({Pass::backward, 0, m});
  return order;
}

const Registration<PipelineSchedule> registered{"gpipe",
                                                {"all micro-batches forward, then all backward", {}, order}};

}  // namespace
}  // namespace shardmark::strategies::gpipe

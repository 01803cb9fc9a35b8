// zero_bubble_v: two parts of the model on each rank, placed there and back (Placement::v), so that rank 0
// has the first and the last. Backward is split, as under zero_bubble. From the last rank
// a micro-batch returns by the neighbours that it came by, and where forward and both parts of backward take
// equally long, ranks are only idle before their first and after their last action. Every rank keeps as many
// micro-batches in flight as the first one of 1f1b does. Source: Qi et al., Zero Bubble Pipeline Parallelism,
// ICLR 2024, section 6 (ZB-V).
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies::zero_bubble_v {
namespace {

constexpr int64_t kThere = 0, kBack = 1;  // the two chunks

// The order of `all` micro-batches, of which the first `micro_batches` exist.
class Writer {
 public:
  explicit Writer(int64_t micro_batches) : micro_batches_(micro_batches) {}

  void forward(int64_t chunk) { add(Pass::forward, chunk); }
  void backward_input(int64_t chunk) { add(Pass::backward_input, chunk); }
  void backward_weight(int64_t chunk) { add(Pass::backward_weight, chunk); }
  void backward(int64_t chunk) {
    backward_input(chunk);
    backward_weight(chunk);
  }
  // The micro-batches that have passed.
  int64_t passed(Pass pass, int64_t chunk) const { return next_[static_cast<size_t>(pass)][chunk]; }
  bool lacks_weights(int64_t chunk) const {
    return passed(Pass::backward_weight, chunk) < passed(Pass::backward_input, chunk);
  }
  PipelineOrder order;

 private:
  void add(Pass pass, int64_t chunk) {
    const int64_t m = next_[static_cast<size_t>(pass)][chunk]++;
    if (m < micro_batches_) order.push_back({pass, chunk, m});
  }
  int64_t micro_batches_;
  int64_t next_[4][2] = {};  // [pass][chunk]
};

// With fewer micro-batches than it takes to fill the pipeline, the order is that of as many as it takes,
// without those that do not exist.
PipelineOrder order(const Stage& stage, int64_t micro_batches) {
  const int64_t behind = stage.count - stage.index, all = std::max(2 * stage.count - 1, micro_batches);
  Writer write(micro_batches);
  for (int64_t i = 0; i < 2 * behind - 1; ++i) write.forward(kThere);
  for (int64_t i = 0; i < stage.index; ++i) {
    write.forward(kBack);
    write.forward(kThere);
  }
  for (int64_t i = 0; i < behind; ++i) {
    write.forward(kBack);
    write.backward(kBack);
  }
  while (write.passed(Pass::forward, kBack) < all) {
    if (write.passed(Pass::forward, kThere) < all) write.forward(kThere);
    write.backward(kThere);
    write.forward(kBack);
    write.backward(kBack);
  }
  for (int64_t i = 0; i < stage.index; ++i) {
    write.backward_input(kThere);
    write.backward_input(kBack);
  }
  for (int64_t i = 0; i < behind; ++i) {
    write.backward_input(kThere);
    write.backward_weight(kThere);
  }
  for (const int64_t chunk : {kBack, kThere})
    while (write.lacks_weights(chunk)) write.backward_weight(chunk);
  return std::move(write.order);
}

const Registration<PipelineSchedule> registered{
    "zero_bubble_v",
    {.description = "zero_bubble through two parts on each rank, placed there and back (ZB-V)",
     .options = {},
     .order = order,
     .chunks = [](const Options&) { return int64_t{2}; },
     .placement = Placement::v}};

}  // namespace
}  // namespace shardmark::strategies::zero_bubble_v

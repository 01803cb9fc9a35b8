// interleaved: 1f1b with several smaller parts of the model (chunks) on each rank, which divides the bubble
// by their number and multiplies the number of messages by it. Micro-batches go in rounds: all micro-batches
// of a round pass through all chunks of a rank before the next round begins. Source: Narayanan et al., SC
// 2021, section 2.2 and figure 4 bottom, which has rounds of `count` micro-batches. If `count` does not
// divide the number of micro-batches, the number of rounds is rounded down, and their sizes differ by one at
// most. Where they are all equal, the order is torch's.
#include <algorithm>

#include "strategies/pipeline.h"

namespace shardmark::strategies::interleaved {
namespace {

struct Turn {
  int64_t chunk, micro_batch;
};

// The sizes of the rounds in order, the larger ones first. A round is never smaller than `count` if there are
// enough micro-batches, because it would leave ranks idle.
std::vector<int64_t> round_sizes(const Stage& stage, int64_t micro_batches) {
  const int64_t rounds = std::max<int64_t>(1, micro_batches / stage.count);
  std::vector<int64_t> sizes;
  for (int64_t round = 0; round < rounds; ++round)
    sizes.push_back(micro_batches / rounds + (round < micro_batches % rounds));
  return sizes;
}

// The order in which micro-batches pass through a rank's chunks in forward. In backward, chunks are counted
// from the last one.
std::vector<Turn> turns(const Stage& stage, const std::vector<int64_t>& rounds) {
  std::vector<Turn> turns;
  int64_t first = 0;
  for (const int64_t size : rounds) {
    for (int64_t chunk = 0; chunk < stage.chunks; ++chunk)
      for (int64_t m = first; m < first + size; ++m) turns.push_back({chunk, m});
    first += size;
  }
  return turns;
}

PipelineOrder order(const Stage& stage, int64_t micro_batches) {
  const std::vector<int64_t> rounds = round_sizes(stage, micro_batches);
  const std::vector<Turn> all = turns(stage, rounds);
  const auto forward = [&](const Turn& t) { return PipelineAction{Pass::forward, t.chunk, t.micro_batch}; };
  const auto backward = [&](const Turn& t) {
    return PipelineAction{Pass::backward, stage.chunks - 1 - t.chunk, t.micro_batch};
  };
  // The warm-up is forward of the first round through all chunks but the last, and two more forwards for each
  // rank behind this one, because a micro-batch passes these ranks on its way there and back.
  const size_t warm_up = std::min(all.size(), static_cast<size_t>((stage.chunks - 1) * rounds.front() +
                                                                  2 * (stage.count - 1 - stage.index)));
  PipelineOrder order;
  for (size_t i = 0; i < warm_up; ++i) order.push_back(forward(all[i]));
  for (size_t i = warm_up; i < all.size(); ++i) {
    order.push_back(forward(all[i]));
    order.push_back(backward(all[i - warm_up]));
  }
  for (size_t i = all.size() - warm_up; i < all.size(); ++i) order.push_back(backward(all[i]));
  return order;
}

int64_t chunks(const Options& options) { return options.at("chunks").get<int64_t>(); }

const OptionTable kOptions = {{"chunks", OptionType::integer, 2, "parts of the model on each rank", {}, 2}};

const Registration<PipelineSchedule> registered{
    "interleaved", {"1f1b through several smaller parts on each rank", kOptions, order, chunks}};

}  // namespace
}  // namespace shardmark::strategies::interleaved

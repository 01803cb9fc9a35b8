// Marks at the beginning of each block, and the medians between them.
#include "executor/block_timer.h"

#include "base/stats.h"

namespace shardmark {

using What = strategies::Instruction::What;

// What is computed again is a part of the backward that needs it.
void BlockTimer::begin(What what, int64_t index) {
  if (what == What::recompute) what = What::backward;
  if (!marks_.empty() && marks_.back() == Mark{what, index}) return;
  timeline_.mark();
  marks_.push_back(Mark{what, index});
}

void BlockTimer::end_step() {
  timeline_.mark();
  marks_.push_back(std::nullopt);
}

std::vector<double> BlockTimer::medians(size_t num_blocks) {
  std::vector<std::vector<double>> seconds(2 + 2 * num_blocks);
  const std::vector<double> times = timeline_.resolve();
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    if (!marks_[i]) continue;
    const auto [what, index] = *marks_[i];
    const auto block = static_cast<size_t>(index);
    const size_t place = what == What::data       ? 0
                         : what == What::forward  ? 1 + block
                         : what == What::backward ? 1 + num_blocks + block
                                                  : 1 + 2 * num_blocks;
    seconds[place].push_back(times[i + 1] - times[i]);
  }
  marks_.clear();
  std::vector<double> medians;
  medians.reserve(seconds.size());
  for (const auto& one : seconds) medians.push_back(one.empty() ? 0 : median(one));
  return medians;
}

}  // namespace shardmark

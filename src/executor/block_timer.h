// How long each block of a step computes.
#pragma once

#include "device/timeline.h"
#include "strategies/program.h"

namespace shardmark {

class BlockTimer {
 public:
  explicit BlockTimer(at::Device device) : timeline_(device) {}
  void begin(strategies::Instruction::What what, int64_t index);  // which ends what was before
  void end_step();

  // Medians over the steps since the last call, in seconds, all micro-batches alike: as laid out in series
  // "block_time" (schema/fields.h). Waits for the stream on a GPU.
  std::vector<double> medians(size_t num_blocks);

 private:
  struct Mark {
    strategies::Instruction::What what;
    int64_t index;
    bool operator==(const Mark&) const = default;
  };
  Timeline timeline_;
  std::vector<std::optional<Mark>> marks_;  // parallel to the timeline's; none: a step ends
};

}  // namespace shardmark

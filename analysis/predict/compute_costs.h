// What a step computes, without its communication: from the training points of one family, for any strategy
// and batch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"
#include "strategies/simulate.h"
#include "strategies/strategy.h"

namespace shardmark {

using strategies::ComputeTimes;
using strategies::SimulatedStep;

// What a measured point computed: the times of its blocks (series "block_time") on the rank that computes
// longest, scaled so that a step of them lasts as long as the measured step without its exposed
// communication.
struct MeasuredCompute {
  const MergedPoint* merged;
  std::string strategy;  // resolved, as text
  ComputeTimes times;
  double owned_elements;  // that a rank updates
};
// Nothing where the record holds no block times, or has no time to scale them to.
// point: merged.point as known_point() has it.
std::optional<MeasuredCompute> measured_compute(const MergedPoint& merged, const Point& point);

// What a stage of a point computes of it. whole: of the blocks of a rank that would have them all, and the
// update of the first stage's; first: of that one's program.
ComputeTimes times_of_stage(const ComputeTimes& whole, const strategies::RankStep& step,
                            const strategies::Program& program, const strategies::Program& first);

// Whether its ranks exchange anything.
bool communicates(const Point& point);

// The largest number of parameters that a rank updates, by the strategy's program.
double owned_elements(const Point& point);

class ComputeCosts {
 public:
  // All of one family.
  explicit ComputeCosts(std::vector<MeasuredCompute> measured);
  ComputeCosts(ComputeCosts&&) = default;  // not copied: batches point at what was measured
  ComputeCosts& operator=(ComputeCosts&&) = default;

  // For a point of the family; table: of its model; without: a point that is left out. Blocks: median over
  // strategies at that batch (between measured batches linear, beyond them in proportion), times what its
  // strategy takes beside others where it was measured. Update: of the strategy on as many ranks where
  // measured, else by the elements that a rank owns.
  //
  // The points that count communicate if this one does, and do not if it does not (moving bytes takes cores
  // and caches from computing). They have as many ranks per node, or the next more. They share each block
  // among as many ranks and have as many stages, where that was measured; else times are in proportion to a
  // block's FLOPs on a rank, as if smaller products took their share of the time.
  //
  // Returns nothing if nothing was measured. The blocks are those of the whole model, as a rank of the point
  // has them.
  std::optional<ComputeTimes> times(const Point& point, int64_t ranks_per_node,
                                    const specs::ModelTable& table,
                                    const MergedPoint* without = nullptr) const;

  // What a rank held beyond the strategy's own memory: median over the points that leave the model whole; a
  // NaN where there are none.
  double activation_bytes_per_sample() const { return activation_bytes_per_sample_; }
  size_t num_measured() const { return measured_.size(); }
  bool has_measured(specs::Split split) const;  // blocks that are cut like this

 private:
  struct Batch {
    std::vector<const MeasuredCompute*> points;
    ComputeTimes medians;  // over them
  };
  using Batches = std::map<double, Batch>;  // by size
  // Points that may be put together.
  struct Kind {
    bool communicates;
    int64_t ranks_per_node;
    specs::Split split;
    int64_t stages;
    Batches batches;
  };
  const Kind* nearest(const Point& point, int64_t ranks_per_node, const MergedPoint* without) const;

  std::vector<MeasuredCompute> measured_;
  std::vector<Kind> kinds_;
  double activation_bytes_per_sample_;
};

}  // namespace shardmark

// What a step computes, without its communication: from the training points of one family, for any strategy
// and batch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/merged.h"
#include "analysis/predict/simulate.h"
#include "strategies/strategy.h"

namespace shardmark {

// Of a point that was measured: its moments (series "block_time") on the rank that computes longest, scaled
// so that a step of them lasts as long as the measured step without its exposed communication.
struct MeasuredCompute {
  const MergedPoint* merged;
  std::string strategy;  // resolved, as text
  ComputeTimes times;
  double owned_elements;  // that a rank updates
};
// Nothing where the record holds no block times, or has no time to scale them to.
// point: merged.point as known_point() has it.
std::optional<MeasuredCompute> measured_compute(const MergedPoint& merged, const Point& point);

// Whether its ranks exchange anything.
bool communicates(const Point& point);

// The largest number of parameters that a rank updates, by the strategy's program.
double owned_elements(const Point& point, const specs::ModelTable& table);

class ComputeCosts {
 public:
  // All of one family.
  explicit ComputeCosts(std::vector<MeasuredCompute> measured);
  ComputeCosts(ComputeCosts&&) = default;  // not copied: batches point at what was measured
  ComputeCosts& operator=(ComputeCosts&&) = default;

  // For a point of the family; table: of its model; without: a point that is left out. Blocks: median over
  // strategies at that batch (between measured batches linear, beyond them in proportion), times what its
  // strategy takes beside others where it was measured. Update: of the strategy on as many ranks where
  // measured, else by the elements that a rank owns. Of points that communicate, or do not, as this one does
  // (moving bytes takes cores and caches from computing), with as many ranks per node, or the next more.
  // Nothing where nothing was measured.
  std::optional<ComputeTimes> times(const Point& point, int64_t ranks_per_node,
                                    const specs::ModelTable& table,
                                    const MergedPoint* without = nullptr) const;

  // What a rank held beyond the strategy's own memory: median over the points.
  double activation_bytes_per_sample() const { return activation_bytes_per_sample_; }
  size_t num_measured() const { return measured_.size(); }

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
    Batches batches;
  };
  const Kind* nearest(const Point& point, int64_t ranks_per_node, const MergedPoint* without) const;

  std::vector<MeasuredCompute> measured_;
  std::vector<Kind> kinds_;
  double activation_bytes_per_sample_;
};

}  // namespace shardmark

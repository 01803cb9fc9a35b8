// A training step over another link between the ranks, by formula: the cost of all-reducing its
// gradients, and Amdahl's curve when that is the part which more ranks do not speed up. No overlap: the most
// a link can cost.
#pragma once

#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/table/table.h"
#include "specs/link.h"

namespace shardmark {

// A step on one rank, whose global batch is then divided over n.
struct OneRankStep {
  std::string label;  // "gpt2", of a measured one "gpt2, global batch 8"
  double step_s = Measures::kNone;
  double gradient_bytes = 0;
  const MergedPoint* merged = nullptr;  // where it was measured, if it was
  // Whether each of n ranks gets a sample of the global batch; taken for granted where nothing says how many
  // samples that has.
  bool divides_over(int64_t ranks) const {
    return merged == nullptr || ranks <= merged->point.global_batch();
  }
};

// As ddp all-reduces them; 0 for a model or precision that is not known.
double gradient_bytes(const TrainingPoint& point);

// One for each family of training points with one rank (of the largest batch; `single` or ddp before others)
// whose model is known.
std::vector<OneRankStep> workloads(const std::vector<MergedPoint>& points);

// The time of an all-reduce of the gradients over ranks that have a link each, by the cost model that predict
// uses, too (specs/collective_cost.h).
double all_reduce_s(double gradient_bytes, const specs::Link& link, int64_t ranks);
// T(1) / (T(1)/n + all-reduce on n).
double interconnect_speed_up(const OneRankStep& workload, const specs::Link& link, int64_t ranks);
// Amdahl's p: 1 - (all-reduce on many ranks, latency aside) / T(1). Below 0: the link takes longer than the
// step.
double parallel_share(const OneRankStep& workload, const specs::Link& link);

// Rows: workload x link; columns: p, the limit 1 / (1-p), speed-ups.
Table interconnects_table(const std::vector<MergedPoint>& points, const std::vector<specs::Link>& links);
Table interconnects_table(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links);
// Rows: models by their gradients; columns: links; cells: time of the all-reduce on these ranks.
Table all_reduce_table(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                       int64_t ranks);

}  // namespace shardmark

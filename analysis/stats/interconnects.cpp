#include "analysis/stats/interconnects.h"

#include <tuple>

#include "analysis/frame/groups.h"
#include "analysis/frame/known.h"
#include "analysis/frame/names.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

// Which of the points on one rank stands for its family: one without warnings, the larger batch, then the
// least that a strategy adds.
auto order_in_family(const MergedPoint& m) {
  const strategies::Traits& traits = strategies::traits_of(m.point.training.strategy.name);
  return std::tuple(is_unreliable(m), -m.point.training.batch_size, traits.communicates, !traits.buckets);
}

}  // namespace

double gradient_bytes(const TrainingPoint& t) {
  const auto table = known_table(t.model);
  if (!table || !known_master_bytes(t.precision)) return 0;
  const int64_t element = specs::element_bytes(t.precision, t.reduce_dtype).reduce;
  return static_cast<double>(table->num_parameters() * element);
}

std::vector<OneRankStep> workloads(const std::vector<MergedPoint>& points) {
  const PlotNames names(points);
  std::vector<OneRankStep> all;
  for (const PointList& family :
       groups_of(training_points(
                     points, [](const auto& one) { return one.point.ranks == 1 && one.measures.step_s > 0; }),
                 &MergedPoint::family, order_in_family)) {
    const MergedPoint* const merged = family.front();
    const double bytes = gradient_bytes(merged->point.training);
    if (bytes > 0)
      all.push_back({names.family(*merged) + ", " + batch_text(merged->point.global_batch(), true),
                     merged->measures.step_s, bytes, merged});
  }
  return all;
}

double all_reduce_s(double gradient_bytes, const specs::Link& link, int64_t ranks) {
  return specs::collective_s(specs::Collective::all_reduce, gradient_bytes, {ranks, ranks},
                             {{}, link.cost()});
}

double interconnect_speed_up(const OneRankStep& workload, const specs::Link& link, int64_t ranks) {
  const double moved_s = all_reduce_s(workload.gradient_bytes, link, ranks);
  return workload.step_s / (workload.step_s / static_cast<double>(ranks) + moved_s);
}

// A ring all-reduce sends 2 (n-1) / n times the bytes, which is close to 2 times on many ranks.
double parallel_share(const OneRankStep& workload, const specs::Link& link) {
  return 1 - 2 * workload.gradient_bytes / link.bytes_per_s / workload.step_s;
}

}  // namespace shardmark

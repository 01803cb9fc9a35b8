#include "analysis/frame/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/frame/known.h"
#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

// The best peak of each study (or of all: nullptr), machine and precision.
class BestPeaks {
 public:
  explicit BestPeaks(const std::vector<MergedPoint>& points) {
    for (const MergedPoint& merged : points)
      for (size_t i = 0; i < merged.records.size(); ++i)
        if (const double peak = merged.records[i]->measures.peak_flops; peak > 0)
          for (const Environment* study : {merged.environments[i], kAll}) {
            double& best = best_[key(merged, study)];
            best = std::max(best, peak);
          }
  }
  // 0: none was measured.
  double of_study(const MergedPoint& merged, const Environment* study) const {
    const auto found = best_.find(key(merged, study));
    return found == best_.end() ? 0 : found->second;
  }
  double of_all(const MergedPoint& merged) const { return of_study(merged, kAll); }

 private:
  static constexpr const Environment* kAll = nullptr;
  using Key = std::tuple<const Environment*, std::string, std::string>;
  static Key key(const MergedPoint& merged, const Environment* study) {
    return {study, merged.machine, merged.point.training.product_type()};
  }
  std::map<Key, double> best_;
};

// The product's best speed in the study of each record, merged over the records as all rates are: the
// reciprocal of the median of reciprocals.
double peak_of(const MergedPoint& merged, const BestPeaks& best) {
  std::vector<double> seconds;
  for (const Environment* study : merged.environments)
    if (const double peak = best.of_study(merged, study); peak > 0) seconds.push_back(1 / peak);
  return seconds.empty() ? Measures::kNone : 1 / median(std::move(seconds));
}

void add_low_peak(MergedPoint& merged, double best) {
  constexpr double kFree = 0.9;
  const double own = merged.measures.peak_flops;
  if (own < kFree * best)
    merged.warnings.push_back({"low peak",
                               fmt::format("the matrix product before it reached {:.0f} % of this "
                                           "machine's best, so the machine was not idle",
                                           100 * own / best),
                               false});
}

// Whether the point says nothing of the speed of fp8. A device without such products has no peak of them.
bool is_emulated(const MergedPoint& merged) {
  const TrainingPoint& t = merged.point.training;
  return t.emulates_products() || (t.products.name == "fp8" && std::isnan(merged.measures.peak_flops));
}

// Half of attention's among them.
double causal_flops(const Point& point, const Measures& m) {
  const auto table = known_table(point.training.model);
  return table ? m.flops_per_step * table->causal_share() : Measures::kNone;
}

// A share that is not shown gets a mark, whatever other marks the point has.
void add_above(MergedPoint& merged, const char* kind, double flops, double flops_per_s, const char* words) {
  const double share = flops / merged.measures.step_s / flops_per_s;
  if (share > 1)
    merged.warnings.push_back({kind, fmt::format("{} % of {}", format_number(100 * share, 3), words), false});
}

}  // namespace

double matmul_share(const Point& point, const Measures& m) {
  return share_of_rate(causal_flops(point, m), m.step_s, m.peak_flops);
}

void find_utilization(std::vector<MergedPoint>& points) {
  const BestPeaks best(points);
  for (MergedPoint& merged : points) {
    Measures& m = merged.measures;
    if (!is_training(merged)) continue;
    if (is_emulated(merged))
      merged.warnings.push_back(
          {"emulated", "its fp8 products were emulated, which shows what training becomes, and no speed",
           false});
    if (m.peak_flops > 0) add_low_peak(merged, best.of_all(merged));
    m.peak_flops = peak_of(merged, best);
    m.mfu = mfu_of(m);
    const double flops = causal_flops(merged.point, m);
    merged.of_matmul = share_of_rate(flops, m.step_s, m.peak_flops);
    add_above(
        merged, "above data sheet", m.flops_per_step, m.datasheet_flops,
        "the data sheet's peak, so the MFU is not shown: it counts attention in full, of which a causal "
        "kernel computes half");
    add_above(merged, "above matmul", flops, m.peak_flops,
              "a matrix product's speed, so the share is not shown: other work slowed that product when the "
              "ranks started, or the model's kernels need fewer operations than are counted");
  }
}

}  // namespace shardmark

// See peaks.h.
#include "analysis/quality/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardmark {

void use_best_peaks(std::vector<MergedPoint>& points) {
  constexpr double kFree = 0.9;
  std::map<std::pair<std::string, std::string>, double> best;  // by machine and precision
  const auto peak_for = [&](const MergedPoint& merged) -> double& {
    return best[{merged.machine, merged.point.training.precision}];
  };
  for (const MergedPoint& merged : points)
    for (const Record* record : merged.records)
      if (record->measures.peak_flops > 0)
        peak_for(merged) = std::max(peak_for(merged), record->measures.peak_flops);
  for (MergedPoint& merged : points) {
    Measures& m = merged.measures;
    const double peak = peak_for(merged);
    if (!is_training(merged) || !(m.peak_flops > 0)) continue;
    if (m.peak_flops < kFree * peak)
      merged.warnings.push_back({"low peak",
                                 fmt::format("the matrix product before it reached {:.0f} % of this "
                                             "machine's best, so the machine was not idle",
                                             100 * m.peak_flops / peak),
                                 false});
    m.mfu *= m.peak_flops / peak;
    m.peak_flops = peak;
  }
}

}  // namespace shardmark

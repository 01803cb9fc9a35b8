// See peaks.h.
#include "analysis/quality/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"

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
    m.peak_flops = peak;
    m.mfu = m.flops_per_step / m.step_s / peak;
    if (m.mfu > 1 && !is_unreliable(merged))
      merged.warnings.push_back({"impossible MFU",
                                 fmt::format("MFU {} %: no step is faster than the device, so something "
                                             "else ran on the machine while its peak was measured",
                                             format_number(100 * m.mfu, 3)),
                                 false});
  }
}

}  // namespace shardmark

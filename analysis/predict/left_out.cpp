// Points that share a reason are one line.
#include "analysis/predict/left_out.h"

#include <fmt/format.h>

#include <set>

#include "analysis/frame/known.h"
#include "analysis/frame/names.h"
#include "analysis/predict/compute_costs.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string name_of(const PredictedPoint& one) {
  const TrainingPoint& t = one.prediction.point.training;
  return fmt::format("{} with batch {}", strategy_text(t), t.batch_size);
}

// Points that share a reason.
struct LeftOut {
  std::set<int64_t> ranks;
  int64_t num_points = 0;
  const PredictedPoint* first = nullptr;

  void add(const PredictedPoint& one) {
    ranks.insert(one.prediction.point.ranks);
    if (num_points++ == 0) first = &one;
  }
  std::string text() const {
    const std::string last = ranks_text(*ranks.rbegin());
    return fmt::format("{} ({} point{}, such as {})",
                       ranks.size() == 1 ? last : fmt::format("{} ... {}", *ranks.begin(), last), num_points,
                       num_points == 1 ? "" : "s", name_of(*first));
  }
};
using Reasons = std::map<std::string, LeftOut>;

std::vector<std::string> lines_of(const Reasons& reasons) {
  std::vector<std::string> lines;
  for (const auto& [why, left_out] : reasons) lines.push_back(left_out.text() + ": " + why);
  return lines;
}

bool has_times_of_blocks(const MergedPoint& merged) {
  return std::any_of(merged.records.begin(), merged.records.end(),
                     [](const Record* record) { return record->series("block_time") != nullptr; });
}

}  // namespace

std::vector<std::string> why_unknown(const std::vector<PredictedPoint>& predicted) {
  Reasons reasons;
  for (const PredictedPoint& one : predicted)
    if (const std::string& why = one.prediction.unknown; !why.empty()) reasons[why].add(one);
  return lines_of(reasons);
}

std::vector<std::string> why_none_is_best(const std::vector<PredictedPoint>& predicted,
                                          const BestPoints& best, const PredictQuery& query) {
  Reasons unknown;
  LeftOut large;
  const PredictedPoint* least = nullptr;
  for (const PredictedPoint& one : predicted) {
    if (best.contains({one.like, one.prediction.point.ranks})) continue;
    if (const std::string& why = one.prediction.unknown; !why.empty()) {
      unknown[why].add(one);
      continue;
    }
    large.add(one);
    if (least == nullptr || one.prediction.memory_bytes < least->prediction.memory_bytes) least = &one;
  }
  std::vector<std::string> lines = lines_of(unknown);
  if (least != nullptr)
    lines.push_back(fmt::format("{}: nothing fits into {}; the least is {}, of {} on {}", large.text(),
                                format_bytes(query.memory_bytes),
                                format_bytes(least->prediction.memory_bytes), name_of(*least),
                                ranks_text(least->prediction.point.ranks)));
  return lines;
}

std::vector<std::string> why_unused(const std::vector<MergedPoint>& points) {
  int64_t with_warnings = 0, unknown = 0, without_times = 0;
  std::set<std::string> warnings;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const auto point = known_point(merged.point);
    if (is_unreliable(merged)) {
      ++with_warnings;
      for (const Warning& warning : merged.warnings)
        if (warning.excludes) warnings.insert(warning.kind);
    } else if (!has_times_of_blocks(merged) || (point && !measured_compute(merged, *point))) {
      ++without_times;
    } else if (!point) {
      ++unknown;
    }
  }
  std::vector<std::string> lines;
  const auto add = [&](int64_t count, const char* one, const char* several, const std::string& why) {
    if (count > 0)
      lines.push_back(fmt::format("{} training point{} {}", count, count == 1 ? "" : "s",
                                  (count == 1 ? one : several) + why));
  };
  add(with_warnings, "carries", "carry",
      fmt::format(" warnings ({}): measure again with more steps and without other work on the machine",
                  fmt::join(warnings, ", ")));
  add(unknown, "is", "are", " of models or strategies that this version does not know");
  add(without_times, "has", "have",
      " no times of blocks, as after an import: measure with run or launch of this version");
  return lines;
}

}  // namespace shardmark

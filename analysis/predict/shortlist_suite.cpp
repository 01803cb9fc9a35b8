// Shortlists as a suite.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/frame/layouts.h"
#include "analysis/frame/suite_of.h"
#include "analysis/predict/predicted_layouts.h"
#include "base/error.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr int64_t kStarts = 3;  // fewer never show that one layout is slower than another

std::string predicted_text(const PredictedPoint& one) {
  return fmt::format("{}, {}: predicted {} a step", layout_text(one.prediction.point),
                     brief_text("strategy", one.prediction.point.training.strategy),
                     format_seconds(one.prediction.step_s.value));
}

}  // namespace

std::string shortlist_suite(const std::vector<LayoutSearch>& searches, const PredictQuery& query) {
  std::vector<SuitePoint> blocks;
  for (const LayoutSearch& search : searches)
    for (const PredictedPoint& one : search.found)
      if (one.fits) blocks.push_back({one.prediction.point, predicted_text(one)});
  if (blocks.empty())
    throw UsageError(fmt::format("--layouts: nothing fits into {}, so there is nothing to measure",
                                 format_bytes(query.memory_bytes)));
  const int64_t ranks = blocks.front().point.ranks;
  return suite_of(
      {"layouts", fmt::format("the layouts of {} ranks that shardmark predict suggests to measure", ranks),
       fmt::format("Each repetition is a start of the ranks, so measure it by: shardmark launch FILE -n {}\n"
                   "The table layouts of shardmark report ranks what was measured.",
                   ranks),
       kStarts},
      blocks);
}

}  // namespace shardmark

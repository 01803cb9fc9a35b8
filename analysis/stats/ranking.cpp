// The test is that of `compare`, with each point as the launches after, and the first as those before.
#include "analysis/stats/ranking.h"

#include <algorithm>

#include "analysis/stats/compare.h"

namespace shardmark {
namespace {

// The latest launches of a point; beyond kMostLaunches of them the exact test would take too long.
std::vector<double> times_of(const MergedPoint& merged) {
  std::vector<double> times;
  for (const Estimate& step_s : merged.launches)
    if (step_s.value > 0) times.push_back(step_s.value);
  if (times.size() > kMostLaunches) times.erase(times.begin(), times.end() - kMostLaunches);
  return times;
}

}  // namespace

size_t num_perhaps_fastest(const std::vector<const MergedPoint*>& points) {
  if (points.empty()) return 0;
  const std::vector<double> fastest = times_of(*points.front());
  std::vector<LaunchPair> pairs;
  std::vector<size_t> places;  // of the pairs' points
  for (size_t i = 1; i < points.size(); ++i) {
    LaunchPair pair{fastest, times_of(*points[i])};
    if (std::min(pair.old_s.size(), pair.new_s.size()) < kLeastLaunches) continue;
    pairs.push_back(std::move(pair));
    places.push_back(i);
  }
  const std::vector<Comparison> comparisons = compare_launches(pairs, 0);
  size_t count = points.size(), pair = pairs.size();
  // Takes rows off from the slowest one on, as long as the test calls them SLOWER than the first. A row that
  // it does not call SLOWER ends this, and all rows before it stay, too: a row with a shorter step is no
  // surer to be slower. A row with too few launches has no pair, so it also ends this. The margin is 0: any
  // difference that the launches show orders two rows.
  while (pair > 0 && places[pair - 1] == count - 1 && comparisons[pair - 1].verdict == Judgement::slower)
    --pair, --count;
  return count;
}

bool is_surely_more(const MergedPoint& more, double factor, const MergedPoint& less) {
  LaunchPair pair{times_of(less), times_of(more)};
  if (std::min(pair.old_s.size(), pair.new_s.size()) < kLeastLaunches) return false;
  for (double& seconds : pair.new_s) seconds *= factor;
  return compare_launches({pair}, 0).front().verdict == Judgement::slower;
}

}  // namespace shardmark

// Which layouts of a job are worth measuring. A prediction does not say which layout is fastest, above all on
// many nodes, but a few of the shortest predicted steps mostly hold one that is: how many these are was
// calibrated on published layouts (tests/unit/published_playbook.h), and README.md says how often it holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// These are the fewest that held a layout within 5 % of the best in nine of ten sets of published layouts,
// and one more, because these sets are few.
inline constexpr int64_t kFewNodes = 8;
inline constexpr size_t kOnFewNodes = 3, kOnManyNodes = 7;
inline constexpr size_t kWithoutGrowth = 10;  // on many nodes, where no growth with nodes was fitted
size_t shortlist_size(int64_t nodes, bool has_growth);

// The rule of thumb that predicts nothing: no pipeline, the fewest tensor-parallel ranks, then ZeRO stage 1
// before other sharding and before none, the largest micro-batch. Whether a comes before b.
bool is_before_by_rule(const Point& a, const Point& b);

struct LayoutCandidate {
  const Point* point;
  double step_s;  // predicted
};
// Which of them to measure, the shortest predicted step first: what the rule of thumb takes, and the first by
// prediction. `size` of them, or all.
std::vector<size_t> shortlist(const std::vector<LayoutCandidate>& all, size_t size);

// On which nodes this was checked, and how well it did beside the rule of thumb.
std::string how_it_was_checked();

}  // namespace shardmark

// One rule for who is faster, in all tables of the first screen: each row says how much longer its step takes
// than the fastest, and one sign stands behind all rows that these launches cannot tell from the fastest. A
// sentence below the table says the same in words.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "analysis/frame/groups.h"
#include "analysis/overview/overview.h"
#include "analysis/table/table.h"

namespace shardmark {

// rows: "strategy"; further: what else its definition has to say.
Column slower_column(const std::string& row, const std::string& further = "");

// The tier of a point among rivals, the fastest of them first.
class Ranking {
 public:
  explicit Ranking(PointList rivals);
  Tier tier(const MergedPoint& merged) const;

 private:
  PointList rivals_;
  size_t num_unsure_ = 0;
};

// "fastest", "+11 %", "+2 % ?", "-10 %", "(+300 %)". ratio: its step / that of the fastest.
Cell slower_cell(double ratio, Tier tier);
inline Cell slower_cell(const MergedPoint& merged, const MergedPoint& fastest, Tier tier) {
  return slower_cell(merged.measures.step_s / fastest.measures.step_s, tier);
}

// What the sign means in a table, and what to do.
class TierNotes {
 public:
  void add(const MergedPoint& merged, Tier tier);
  void append_to(std::vector<std::string>& notes) const;

 private:
  int64_t least_ = std::numeric_limits<int64_t>::max(), most_ = -1;  // launches of a marked row
  int64_t num_few_ = 0, least_steps_ = std::numeric_limits<int64_t>::max(), most_steps_ = 0;
  bool any_unreliable_ = false;
};

}  // namespace shardmark

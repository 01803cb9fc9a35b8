// One rule for who is faster, in all tables of the first screen: each row says how much longer its step takes
// than the fastest, and one sign stands behind all rows that these launches cannot tell from the fastest. A
// sentence below the table says the same in words.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/table/table.h"

namespace shardmark {

// rows: "strategy"; further: what else its definition has to say.
Column slower_column(const std::string& row, const std::string& further = "");

enum class Tier {
  fastest,    // all others are slower
  slower,     // than the fastest, as the launches show
  perhaps,    // not told from the fastest
  unranked,   // beside the others, but no rival of theirs
  unreliable  // its times have a warning
};
// "fastest", "+11 %", "+2 % ?", "-10 %", "(+300 %)". ratio: its step / that of the fastest.
Cell slower_cell(double ratio, Tier tier);

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

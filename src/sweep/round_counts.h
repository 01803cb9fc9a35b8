// How often a load and a collective are repeated in a round that measures both at once, so that both take
// equally long alone. Pure: the same times give the same counts on every rank.
//
// Where one side is longer it runs on when the other has ended, and nothing that is divided by the shorter
// side says anything of the machine: it only says how much longer the longer side was made.
#pragma once

#include <cstdint>

namespace shardmark {

struct RoundCounts {
  int64_t units = 0;       // of the load
  int64_t operations = 0;  // of the collective
  bool are_known() const { return units > 0 && operations > 0; }
};

// By the time of one of each, in seconds. At least kLeastUnits units, because a collective's end is seen
// between two of them, and several more where they are short.
inline constexpr int64_t kLeastUnits = 4;
RoundCounts round_counts(double unit_s, double operation_s);

// Both sides alone differ by less than that part of the longer one.
inline constexpr double kEqualSides = 0.1;
bool are_equally_long(double load_s, double collective_s);

}  // namespace shardmark

// How often a load and a collective are repeated in a round that runs both at the same time, so that each
// takes equally long when it runs alone. Pure: all ranks get the same counts from the same times.
//
// If one side is longer, it keeps running after the other has ended. The slow-down of the shorter side would
// then depend on how much longer the other side was made, and say nothing about the machine.
#pragma once

#include <cstdint>

namespace shardmark {

struct RoundCounts {
  int64_t units = 0;       // repetitions of the load
  int64_t operations = 0;  // repetitions of the collective
  bool are_known() const { return units > 0 && operations > 0; }
};

// Computes the counts from the time of one unit and one operation, in seconds. There are at least kLeastUnits
// units, because the end of a collective is noticed only between two units; more if they are short.
inline constexpr int64_t kLeastUnits = 4;
RoundCounts round_counts(double unit_s, double operation_s);

// Two sides count as equally long if they differ by less than this part of the longer one.
inline constexpr double kEqualSides = 0.1;
bool are_equally_long(double load_s, double collective_s);

}  // namespace shardmark

// Which pairs are measured when: rounds in which each meets one other, and how many of them fit a budget.
#pragma once

#include <vector>

namespace shardmark::doctor {

// The circle method: over all rounds each two of n members meet once; with an odd n one rests in each round.
int num_rounds(int n);
int partner(int n, int round, int member);  // -1: rests

struct Meetings {
  std::vector<int> rounds;  // ascending; a sample, evenly spread, where not all fit
  int passes = 1;           // over all rounds: the best one counts, because faults stay and disturbances go
  int repeats = 1;          // large messages in each meeting
};

// What fits into budget_s seconds, when a round takes setup_s and further exchange_s for each large message,
// the first of which is not counted. At least one round with one message.
Meetings plan_meetings(int num_rounds, double setup_s, double exchange_s, double budget_s);

}  // namespace shardmark::doctor

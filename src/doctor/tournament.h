// Which pairs are measured when: in rounds, in which each member meets one other. Also how many rounds fit
// into a time budget.
#pragma once

#include <vector>

namespace shardmark::doctor {

// The circle method: over all rounds every two of n members meet once. If n is odd, one member rests in each
// round.
int num_rounds(int n);
int partner(int n, int round, int member);  // -1: rests

struct Meetings {
  // Ascending. If not all rounds fit, an evenly spread sample.
  std::vector<int> rounds;
  // Passes over all rounds. The fastest counts, because faults stay and disturbances do not.
  int passes = 1;
  int repeats = 1;  // large messages per meeting
};

// Plans what fits into budget_s seconds if a round takes setup_s plus exchange_s for each large message; the
// first message of a meeting is not counted in the result. At least one round with one message is planned.
Meetings plan_meetings(int num_rounds, double setup_s, double exchange_s, double budget_s);

}  // namespace shardmark::doctor

// The circle method (Kirkman 1847), and how much of it fits into a time budget.
#include "doctor/tournament.h"

#include <algorithm>
#include <cstdint>

namespace shardmark::doctor {

int num_rounds(int n) { return n < 2 ? 0 : n - 1 + n % 2; }

int partner(int n, int round, int member) {
  // An odd number of members sits in the circle. In round r those meet whose numbers add up to r (mod
  // circle).
  const int circle = num_rounds(n);
  // If n is even, one member stays outside of the circle and meets the one that is left over.
  if (member == circle) return round * (circle + 1) / 2 % circle;
  const int other = ((round - member) % circle + circle) % circle;
  if (other != member) return other;
  return n % 2 == 0 ? circle : -1;
}

Meetings plan_meetings(int num_rounds, double setup_s, double exchange_s, double budget_s) {
  constexpr int kMostRepeats = 8, kMostPasses = 10;
  Meetings plan;
  const auto takes = [&](int passes, int repeats) {
    return passes * num_rounds * (setup_s + (repeats + 1) * exchange_s);
  };
  plan.passes = takes(2, 1) <= budget_s ? 2 : 1;
  while (plan.repeats < kMostRepeats && takes(plan.passes, plan.repeats + 1) <= budget_s) ++plan.repeats;
  const bool all_fit = plan.passes > 1;
  while (all_fit && plan.passes < kMostPasses && takes(plan.passes + 1, plan.repeats) <= budget_s / 2)
    ++plan.passes;
  const double fit = takes(1, 1) > 0 ? num_rounds * budget_s / takes(1, 1) : num_rounds;
  const int count = all_fit ? num_rounds : std::clamp(static_cast<int>(fit + 1e-6), 1, num_rounds);
  for (int i = 0; i < count; ++i)
    plan.rounds.push_back(static_cast<int>(static_cast<int64_t>(i) * num_rounds / count));
  return plan;
}

}  // namespace shardmark::doctor

// The walk over a schedule.
#include "strategies/step.h"

#include <algorithm>

namespace shardmark::strategies {

Program write_step(StepBuilder& step, std::initializer_list<Holder*> holders) {
  bool trains = false;
  for (const Position& at : step.positions()) {
    step.begin(at.action);
    for (Holder* holder : holders) holder->before(at);
    step.compute(at.action);
    for (auto holder = std::rbegin(holders); holder != std::rend(holders); ++holder) (*holder)->after(at);
    trains = trains || at.is(Compute::backward);
  }
  if (trains) {
    for (Holder* holder : holders) holder->finish();
    step.update();
    for (Holder* holder : holders) holder->publish();
  }
  return step.finish();
}

}  // namespace shardmark::strategies

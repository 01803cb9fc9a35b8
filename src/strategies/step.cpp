// Walks over the schedule and asks each holder before and after every action.
#include "strategies/step.h"

#include <vector>

#include "strategies/messages.h"

namespace shardmark::strategies {

Program write_step(StepBuilder& step, std::initializer_list<Holder*> holding) {
  Messages messages(step);
  std::vector<Holder*> holders = holding;
  holders.push_back(&messages);
  for (const Position& at : step.positions()) {
    step.begin(at.action);
    for (Holder* holder : holders) holder->before(at);
    step.compute(at.action);
    for (auto holder = holders.rbegin(); holder != holders.rend(); ++holder) (*holder)->after(at);
  }
  if (step.trains()) {
    for (Holder* holder : holders) holder->finish();
    step.update();
    for (Holder* holder : holders) holder->publish();
  } else {
    messages.finish();
  }
  return step.finish();
}

}  // namespace shardmark::strategies

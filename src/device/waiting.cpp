// The registered functions, and the loop that calls them.
#include "device/waiting.h"

#include <vector>

#include "base/clock.h"

namespace shardmark {
namespace {

constexpr double kLookEveryS = 0.05;

// Never destroyed, because communicators may be destroyed later than statics.
std::vector<const std::function<void()>*>& looks() {
  static auto* const all = new std::vector<const std::function<void()>*>;
  return *all;
}

}  // namespace

WhileWaiting::WhileWaiting(std::function<void()> look) : look_(std::move(look)) { looks().push_back(&look_); }
WhileWaiting::~WhileWaiting() { std::erase(looks(), &look_); }

void wait_for_device(const std::function<bool()>& done) {
  const auto look = [] {
    for (const auto* one : looks()) (*one)();
  };
  for (double looked_s = now_s(); !done();) {
    if (now_s() - looked_s < kLookEveryS) continue;
    look();
    looked_s = now_s();
  }
  look();  // notes what has completed since
}

}  // namespace shardmark

// Waits of the host for a GPU, in which what happens there is looked at: a wait of CUDA's own would not end
// when a network fails, and nobody would learn which operation it is for.
#pragma once

#include <functional>

namespace shardmark {

// Looks, as long as it lives, some times a second while the host waits for a device, and at the end of the
// wait; what look throws ends it. Of one thread: the one that waits.
class WhileWaiting {
 public:
  explicit WhileWaiting(std::function<void()> look);
  ~WhileWaiting();
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;

 private:
  std::function<void()> look_;
};

// Returns when done() says so. Spins, as CUDA's own waits do: its end is a part of what is timed.
void wait_for_device(const std::function<bool()>& done);

}  // namespace shardmark

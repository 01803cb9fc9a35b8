// How the host waits for a GPU. During the wait, communicators check their operations. A wait inside CUDA
// would not end when a network fails, and nobody would learn which operation it waits for.
#pragma once

#include <functional>

namespace shardmark {

// While it lives, `look` is called several times a second whenever the host waits for a device, and at the
// end of the wait. An exception from `look` ends the wait. It must be used by the thread that waits.
class WhileWaiting {
 public:
  explicit WhileWaiting(std::function<void()> look);
  ~WhileWaiting();
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;

 private:
  std::function<void()> look_;
};

// Returns when done() returns true. It spins, as CUDA's own waits do, because the end of the wait is part of
// what is timed.
void wait_for_device(const std::function<bool()>& done);

}  // namespace shardmark

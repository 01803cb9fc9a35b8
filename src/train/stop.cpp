// The signal handler does nothing but set a flag.
#include "train/stop.h"

#include <csignal>

namespace shardmark {
namespace {

volatile std::sig_atomic_t requested = 0;

void note(int) { requested = 1; }

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() { return requested != 0; }

}  // namespace shardmark

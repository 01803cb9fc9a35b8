// Receives signals through a signalfd, and finds orphans in the list of children in /proc.
#include "launch/signals.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

namespace shardmark {
namespace {

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t pid = 0; file >> pid;) found.push_back(pid);
  return found;
}

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  // Blocked signals stay pending until the signalfd is read, so that none is lost between two polls.
  // SIGCHLD is among them only to wake up poll() when a child ends.
  for (int number : {SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set, number);
  for (int number : {SIGINT, SIGHUP})
    if (!is_ignored(number)) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, &before_);
  descriptor_ = File(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  // Orphans of the launcher become our children instead of those of init, so that kill_orphans() finds
  // them.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Signals::~Signals() {
  asked();
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::asked() {
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD && asked_ == 0) asked_ = static_cast<int>(info.ssi_signo);
  return asked_;
}

void kill_orphans() {
  using Clock = std::chrono::steady_clock;
  // When a child is killed, its own children become ours. So the list is read again until it is empty.
  const auto until = Clock::now() + std::chrono::seconds(10);
  for (auto left = children(); !left.empty() && Clock::now() < until; left = children()) {
    for (pid_t pid : left) ::kill(pid, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace shardmark

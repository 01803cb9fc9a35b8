// Starts child processes with fork and exec, reads their output through a pipe, and ends them with signals.
#include "launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "schema/file.h"

extern char** environ;

namespace shardmark {
namespace {

constexpr int kCannotStart = 127;
// Time from SIGTERM to SIGKILL, and the longest time that output_of() waits.
constexpr auto kGrace = std::chrono::seconds(10);
using Clock = std::chrono::steady_clock;

std::vector<std::string> changed_environment(const EnvironmentChanges& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto is_changed = [&](const auto& change) { return text.starts_with(change.first + "="); };
    if (std::none_of(changes.begin(), changes.end(), is_changed)) entries.push_back(text);
  }
  for (const auto& [name, value] : changes) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw SystemError(std::string("pipe: ") + std::strerror(errno));
    output = File(ends[0]);
    input = File(ends[1]);
  }
  File output, input;
};

// A child process whose stdout or stderr (`descriptor` 1 or 2) we read. It has a process group of its own and
// all signals unblocked. The kernel sends it SIGTERM when we die, even by SIGKILL; a launcher then ends its
// ranks and removes what they share.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const EnvironmentChanges& changes, int descriptor,
        bool hides_errors = false) {
    ::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD were ignored, there would be no child to wait for
    // `failure` is closed by a successful exec (O_CLOEXEC). If exec fails, the child writes errno into it. So
    // the parent can tell a program that could not be started from one that ended with an error.
    Pipe output, failure;
    const auto entries = changed_environment(changes);
    const auto words = pointers(arguments), environment = pointers(entries);
    const pid_t parent = ::getpid();
    // posix_spawn cannot set the signal for our death (PR_SET_PDEATHSIG), so this is fork.
    pid_ = ::fork();
    if (pid_ < 0) throw SystemError(std::string("fork: ") + std::strerror(errno));
    // Until exec, only async-signal-safe functions may be called.
    if (pid_ == 0) {
      const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      ::dup2(null, STDIN_FILENO);
      if (hides_errors) ::dup2(null, STDERR_FILENO);
      ::dup2(output.input.get(), descriptor);
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(kCannotStart);  // our parent died before prctl
      ::execvpe(words.front(), words.data(), environment.data());
      const int error = errno;
      [[maybe_unused]] const ssize_t ignored = ::write(failure.input.get(), &error, sizeof error);
      ::_exit(kCannotStart);
    }
    failure.input.reset();
    output_ = std::move(output.output);  // the other end is closed when the constructor returns
    if (::read(failure.output.get(), &error_, sizeof error_) > 0) ::waitpid(pid_, nullptr, 0);
  }

  int error() const { return error_; }  // errno if the start failed, else 0
  pid_t pid() const { return pid_; }
  int output() const { return output_.get(); }

  // Passes on the lines that have arrived. Returns false at the end of the output.
  bool read_lines(const LineSink& sink) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) {
      if (!rest_.empty()) sink(std::exchange(rest_, {}));
      return false;
    }
    rest_.append(bytes.data(), static_cast<size_t>(count));
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      sink(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
    return true;
  }

  // Whether the child has ended; then `status` is its exit status, or 128 + n after signal n.
  bool has_ended(int& status) const {
    int raw = 0;
    if (::waitpid(pid_, &raw, WNOHANG) != pid_) return false;
    status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    return true;
  }

  void signal(int number) const { ::kill(-pid_, number); }

 private:
  pid_t pid_ = 0;
  int error_ = 0;
  File output_;
  std::string rest_;
};

class Supervisor {
 public:
  Supervisor(Child& child, Signals& signals, const Supervision& supervision)
      : child_(child), signals_(signals), supervision_(supervision) {}

  SupervisedEnd run() {
    while (!child_.has_ended(end_.status)) {
      wait();
      if (const int asked = signals_.asked(); asked != 0 && end_.stopped_by == 0) {
        end_.stopped_by = asked;
        ask_to_end();
      }
      if (!is_ending() && supervision_.has_lost_patience()) {
        end_.gave_up = true;
        ask_to_end();
      }
      if (is_ending() && Clock::now() > killing_) child_.signal(SIGKILL);
    }
    // The launcher has ended, but its ranks may be left: those of its process group, and those that made
    // groups of their own, which are our children now (PR_SET_CHILD_SUBREAPER). What they have written is
    // read before the end.
    child_.signal(SIGKILL);  // kills the rest of its process group
    kill_orphans();
    // What the pipe still holds. Signals are left alone: that of the child is pending, and would not let the
    // loop end while some process that cannot be killed holds the pipe.
    while (is_open_ && has_output()) is_open_ = child_.read_lines(supervision_.on_stderr);
    return end_;
  }

 private:
  bool is_ending() const { return killing_ != Clock::time_point::max(); }
  void ask_to_end() {
    killing_ = std::min(killing_, Clock::now() + kGrace);
    child_.signal(SIGTERM);
    // A stopped process gets the first signal only when it continues.
    child_.signal(SIGCONT);
  }

  // Waits for a signal or output, for at most a second.
  void wait() {
    std::array<pollfd, 2> polled = {pollfd{signals_.descriptor(), POLLIN, 0},
                                    pollfd{is_open_ ? child_.output() : -1, POLLIN, 0}};
    ::poll(polled.data(), polled.size(), 1000);
    if (polled[1].revents != 0) is_open_ = child_.read_lines(supervision_.on_stderr);
  }
  // Waits for output, or its end, for at most a second.
  bool has_output() const {
    pollfd polled{child_.output(), POLLIN, 0};
    return ::poll(&polled, 1, 1000) > 0;
  }

  Child& child_;
  Signals& signals_;
  const Supervision& supervision_;
  SupervisedEnd end_;
  Clock::time_point killing_ = Clock::time_point::max();
  bool is_open_ = true;
};

// Reads the output to its end and returns the exit status; nothing if the child still runs at `until`.
std::optional<int> read_to_end(Child& child, const LineSink& on_stdout, Clock::time_point until) {
  if (child.error() != 0) return kCannotStart;
  int status = 0;
  for (bool is_open = true; is_open || !child.has_ended(status);) {
    if (Clock::now() >= until) return {};
    pollfd polled{is_open ? child.output() : -1, POLLIN, 0};
    ::poll(&polled, 1, is_open ? 100 : 1);
    if (polled.revents != 0) is_open = child.read_lines(on_stdout);
  }
  return status;
}

}  // namespace

int run_process(const std::vector<std::string>& arguments, const EnvironmentChanges& changes,
                const LineSink& on_stdout) {
  Child child(arguments, changes, STDOUT_FILENO);
  return read_to_end(child, on_stdout, Clock::time_point::max()).value_or(kCannotStart);  // never times out
}

std::string output_of(const std::vector<std::string>& arguments) {
  std::string output;
  Child child(arguments, {}, STDOUT_FILENO, /*hides_errors=*/true);
  const auto status = read_to_end(
      child, [&](const std::string& line) { output += line + "\n"; }, Clock::now() + kGrace);
  if (!status) child.signal(SIGKILL);  // not waited for: a driver that hangs may hold it forever
  return status == 0 ? output : "";
}

SupervisedEnd supervise(Signals& signals, const std::vector<std::string>& arguments,
                        const EnvironmentChanges& changes, const Supervision& supervision) {
  Child child(arguments, changes, STDERR_FILENO);
  if (child.error() != 0)
    throw UsageError(arguments.front() + " cannot be started: " + std::strerror(child.error()) +
                     "; install it (jobs/bootstrap.sh), or load its module in jobs/env.sh");
  try {
    supervision.on_start(child.pid());
    return Supervisor(child, signals, supervision).run();
  } catch (...) {  // no process keeps running without supervision
    child.signal(SIGKILL);
    kill_orphans();
    throw;
  }
}

}  // namespace shardmark

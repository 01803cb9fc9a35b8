// Tests the files that kill -9 leaves behind in shared memory and in /tmp, and who removes them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "launch/leftovers.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

// Returns the number of marks that name this folder. Other tests and programs have their own marks at the
// same time.
size_t num_marks_in(const ScratchDirectory& scratch) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(kSharedMemory)) {
    if (!entry.path().filename().string().starts_with(shared_name_prefix())) continue;
    std::ifstream mark(entry.path());
    std::string first, temporary;
    if (std::getline(mark, first) && std::getline(mark, temporary) && temporary == scratch / "") ++count;
  }
  return count;
}

// Waits up to ten seconds for the condition. The kernel may take a while to remove an orphan, and another
// program may be looking at the same mark.
template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    remove_leftovers();
    if (condition()) return true;
    ::usleep(10000);
  }
  return false;
}

// Starts a process that runs until it is killed.
template <class Work>
pid_t start(Work work) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::close(ready[0]);
    [[maybe_unused]] const ssize_t ignored = ::write(ready[1], "", 1);
    for (;;) ::pause();
  }
  char byte = 1;
  ::close(ready[1]);
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  return child;
}

void kill_at_once(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// What a killed mpirun leaves behind. The job family is one that no other mpirun has.
struct Session {
  explicit Session(const ScratchDirectory& scratch, pid_t mpirun)
      : folder(scratch / fmt::format("ompi.n1.{}/pid.{}", ::geteuid(), mpirun)),
        segment(fmt::format("{}/vader_segment.n1.{}.{:x}0001.0", kSharedMemory, ::geteuid(),
                            0xff00 | (mpirun & 0xff))) {
    fs::create_directories(folder);
    write_text(folder + "/contact.txt",
               fmt::format("{}.0;tcp://127.0.0.1:1\n", uint32_t(0xff00 | (mpirun & 0xff)) << 16U));
    write_text(segment, "shared");
  }
  ~Session() { fs::remove(segment); }
  bool is_there() const { return fs::exists(folder) && fs::exists(segment); }
  bool is_gone() const { return !fs::exists(folder) && !fs::exists(segment); }
  std::string folder, segment;
};

TEST(Leftovers, GoWithTheLastOfLaunchAndMpirun) {
  if (!fs::exists(kSharedMemory)) GTEST_SKIP() << "no shared memory here";
  const ScratchDirectory scratch;
  pid_t mpirun = 0;
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t launch = start([&] {
    auto* const mark = new LauncherMark(scratch / "");  // never destroyed, because this process is killed
    const pid_t child = start([] {});
    mark->name(child);
    [[maybe_unused]] const ssize_t ignored = ::write(told[1], &child, sizeof child);
  });
  ASSERT_EQ(::read(told[0], &mpirun, sizeof mpirun), static_cast<ssize_t>(sizeof mpirun));
  const Session session(scratch, mpirun);
  remove_leftovers();
  EXPECT_TRUE(session.is_there());
  kill_at_once(launch);
  remove_leftovers();
  EXPECT_TRUE(session.is_there()) << "mpirun lives, and has inherited the lock";
  EXPECT_EQ(num_marks_in(scratch), 1U);
  ::kill(mpirun, SIGKILL);
  EXPECT_TRUE(comes_true([&] { return session.is_gone() && num_marks_in(scratch) == 0; }));
}

TEST(Leftovers, OfAnMpirunThatWasKilledGoWithItsLaunch) {
  if (!fs::exists(kSharedMemory)) GTEST_SKIP() << "no shared memory here";
  const ScratchDirectory scratch;
  std::optional<LauncherMark> mark(std::in_place, scratch / "");
  const pid_t mpirun = start([] {});
  mark->name(mpirun);
  const Session session(scratch, mpirun);
  kill_at_once(mpirun);
  remove_leftovers();
  EXPECT_TRUE(session.is_there()) << "launch lives, and may be about to look";
  mark.reset();
  EXPECT_TRUE(session.is_gone());
  EXPECT_EQ(num_marks_in(scratch), 0U);
}

// The kernel reuses process ids. A process that is alive is another mpirun with the same session folder.
TEST(Leftovers, SpareASessionWhoseProcessLives) {
  if (!fs::exists(kSharedMemory)) GTEST_SKIP() << "no shared memory here";
  const ScratchDirectory scratch;
  const pid_t other = start([] {});
  const Session session(scratch, other);
  kill_at_once(start([&] { (new LauncherMark(scratch / ""))->name(other); }));
  remove_leftovers();
  EXPECT_TRUE(session.is_there());
  kill_at_once(other);
  EXPECT_TRUE(comes_true([&] { return session.is_gone(); }));
}

}  // namespace
}  // namespace shardmark

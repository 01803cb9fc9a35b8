// What a kill -9 leaves behind in shared memory, and who removes it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "launch/leftovers.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

size_t num_of_ours() {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(kSharedMemory))
    count += entry.path().filename().string().starts_with(shared_name_prefix()) ? 1 : 0;
  return count;
}

// A process that runs until it is killed.
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

// What an mpirun leaves that is killed, with a family of jobs that no other has.
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
  remove_leftovers();
  const size_t before = num_of_ours();
  pid_t mpirun = 0;
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t launch = start([&] {
    auto* const mark = new LauncherMark(scratch / "");  // never destroyed: this process is killed
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
  EXPECT_EQ(num_of_ours(), before + 1);
  ::kill(mpirun, SIGKILL);
  for (int i = 0; i < 1000 && fs::exists(session.segment);
       ++i) {  // an orphan: it ends when the kernel comes to it
    remove_leftovers();
    ::usleep(10000);
  }
  remove_leftovers();
  EXPECT_TRUE(session.is_gone());
  EXPECT_EQ(num_of_ours(), before);
}

TEST(Leftovers, OfAnMpirunThatWasKilledGoWithItsLaunch) {
  if (!fs::exists(kSharedMemory)) GTEST_SKIP() << "no shared memory here";
  const ScratchDirectory scratch;
  remove_leftovers();
  const size_t before = num_of_ours();
  std::optional<LauncherMark> mark(std::in_place, scratch / "");
  const pid_t mpirun = start([] {});
  mark->name(mpirun);
  const Session session(scratch, mpirun);
  kill_at_once(mpirun);
  remove_leftovers();
  EXPECT_TRUE(session.is_there()) << "launch lives, and may be about to look";
  mark.reset();
  EXPECT_TRUE(session.is_gone());
  EXPECT_EQ(num_of_ours(), before);
}

// The kernel gives numbers of processes again: one that lives is another mpirun, with the same folder.
TEST(Leftovers, SpareASessionWhoseProcessLives) {
  if (!fs::exists(kSharedMemory)) GTEST_SKIP() << "no shared memory here";
  const ScratchDirectory scratch;
  const pid_t other = start([] {});
  const Session session(scratch, other);
  kill_at_once(start([&] { (new LauncherMark(scratch / ""))->name(other); }));
  remove_leftovers();
  EXPECT_TRUE(session.is_there());
  kill_at_once(other);
  remove_leftovers();
  EXPECT_TRUE(session.is_gone());
}

}  // namespace
}  // namespace shardmark

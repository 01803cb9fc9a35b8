// Tests the output files for people: they are either complete or unchanged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <ostream>

#include "base/node.h"
#include "schema/beside.h"
#include "schema/file.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

void write(const std::string& path, const std::string& text, bool fails = false) {
  write_whole(path, "name another", [&](std::ostream& out) {
    out << text;
    if (fails) out.setstate(std::ios::badbit);
  });
}

auto num_files(const ScratchDirectory& scratch) {
  const std::filesystem::directory_iterator files(scratch / "");
  return std::distance(begin(files), end(files));
}

TEST(WriteWhole, ReplacesAFileWithItsModeOrLeavesIt) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "page.html";
  write(path, "one");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  write(path, "two");
  EXPECT_EQ(read_text(path), "two");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0640});
  EXPECT_THAT(usage_error([&] { write(path, "half", /*fails=*/true); }),
              HasSubstr("page.html: cannot be written ("));
  EXPECT_EQ(read_text(path), "two");
  EXPECT_EQ(num_files(scratch), 1);
}

TEST(WriteWhole, FollowsLinks) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("page.html", scratch / "link.html");
  write(scratch / "link.html", "one");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.html"));
  EXPECT_EQ(read_text(scratch / "page.html"), "one");
}

TEST(WriteWhole, ADeviceStaysOne) {
  require_writable("/dev/null", "name another");
  write("/dev/null", "nothing");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(WriteWhole, SaysWhereItCannot) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "no/page.html";
  const auto expected =
      HasSubstr("no/page.html: cannot be written (No such file or directory); name another");
  EXPECT_THAT(usage_error([&] { require_writable(path, "name another"); }), expected);
  EXPECT_THAT(usage_error([&] { write(path, "one"); }), expected);
}

TEST(WriteWhole, DoesNotWaitForAPipeThatNobodyReads) {
  const ScratchDirectory scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(usage_error([&] { write(pipe, "one"); }), HasSubstr("no process reads this pipe"));
}

// The lock on the unfinished file goes away if its writer is killed.
TEST(FileBeside, GoesWithItsWriterOrWithTheNextOne) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "page.html";
  const pid_t writer = ::fork();
  if (writer == 0) {
    const FileBeside unfinished(path);
    ::_exit(unfinished ? 0 : 1);  // leaves without calling destructors
  }
  int status = 1;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(num_files(scratch), 1);
  { const FileBeside unfinished(path); }
  EXPECT_EQ(num_files(scratch), 0);
}

TEST(FileBeside, LeavesWhatIsNotAbandoned) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "page.html";
  for (const char* other :
       {"page.html.old.tmp", "page.html.7.tmp", "page.html.node.7", "page.html2.node.7.tmp"})
    write(scratch / other, "kept");
  ASSERT_EQ(::mkfifo((scratch / "page.html.pipe.7.tmp").c_str(), 0600), 0);
  const std::string here = scratch / ("page.html." + host_name() + ".7.tmp"),
                    elsewhere = scratch / "page.html.node.7.tmp";
  write(elsewhere, "of this minute");
  {
    const File writer = open_or_create(here, O_RDWR);
    ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
    write(path, "one");
    EXPECT_EQ(num_files(scratch), 8);
  }
  write(path, "two");
  EXPECT_FALSE(std::filesystem::exists(here));
  EXPECT_EQ(num_files(scratch), 7);
  std::filesystem::last_write_time(elsewhere,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  write(path, "three");
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  EXPECT_EQ(num_files(scratch), 6);
}

TEST(FileBeside, SaysWhereTheSystemTakesNone) {
  const ScratchDirectory scratch;
  const FileBeside unfinished(scratch / "no/page.html");
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(unfinished);
}

TEST(Input, IsARegularFileOfBoundedSize) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x", pipe = scratch / "pipe", loop = scratch / "loop";
  EXPECT_FALSE(read_input(path, 10).has_value());
  EXPECT_FALSE(read_input(path + "/y", 10).has_value());
  write(path, "0123456789");
  EXPECT_EQ(read_input(path, 10), "0123456789");
  EXPECT_THAT(usage_error([&] { read_input(path, 9); }),
              HasSubstr("it has 10 B, and what is read here at most 9 B"));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(usage_error([&] { read_input(pipe, 10); }), HasSubstr("pipe: cannot be read: it is a pipe"));
  EXPECT_THAT(usage_error([&] { open_if_exists(pipe, O_RDWR); }), HasSubstr("it is a pipe"));
  EXPECT_THAT(usage_error([&] { read_input("/dev/zero", 10); }), HasSubstr("it is a device"));
  EXPECT_THAT(usage_error([&] { read_input(scratch / "", 10); }), HasSubstr("it is a folder"));
  std::filesystem::create_symlink("loop", loop);
  EXPECT_THAT(usage_error([&] { read_input(loop, 10); }), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(usage_error([&] { follow_links(loop); }), HasSubstr("Too many levels of symbolic links"));
}

}  // namespace
}  // namespace shardmark

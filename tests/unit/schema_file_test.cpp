// Files for people: whole, or as they were.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <ostream>

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

}  // namespace
}  // namespace shardmark

// Tests the parser of Slurm's hostlists, and its errors for malformed ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hostlist.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Hostlist, IsExpandedInOrder) {
  EXPECT_THAT(expand_hostlist("login1"), ElementsAre("login1"));
  EXPECT_THAT(expand_hostlist("n[1-3,12],x"), ElementsAre("n1", "n2", "n3", "n12", "x"));
  EXPECT_THAT(expand_hostlist("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_hostlist("r[1-2]n[01-02]-ib"),
              ElementsAre("r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"));
  EXPECT_THAT(expand_hostlist("n[3]"), ElementsAre("n3"));
  EXPECT_EQ(expand_hostlist("n[1-65536]").size(), 65536U);
  EXPECT_THAT(expand_hostlist("n[18446744073709551614-18446744073709551615]"),
              ElementsAre("n18446744073709551614", "n18446744073709551615"));
}

TEST(Hostlist, SaysWhatIsWrong) {
  const auto trouble = [](const std::string& text) -> std::string {
    try {
      expand_hostlist(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* text : {"", ",", "a,,b", "a,", "n[]", "n[1,]"})
    EXPECT_THAT(trouble(text), HasSubstr("an empty name")) << text;
  for (const char* text : {"n[1", "n1]", "n[1[2]]", "n]1["})
    EXPECT_THAT(trouble(text), HasSubstr("brackets that do not match")) << text;
  for (const char* text : {"n[a]", "n[1-]", "n[-1]", "n[1-2-3]", "n[ 1]", "n[99999999999999999999]"})
    EXPECT_THAT(trouble(text), HasSubstr("something else than numbers")) << text;
  EXPECT_THAT(trouble("n[3-1]"), HasSubstr("runs backwards"));
  for (const char* text : {"n[0-1000000]", "n[1-18446744073709551615]", "a[1-2000]b[1-2000]",
                           "n[1-600000],m[1-600000]", "n[5,0-18446744073709551615]"})
    EXPECT_THAT(trouble(text), HasSubstr("more than a million names")) << text;
}

}  // namespace
}  // namespace shardmark

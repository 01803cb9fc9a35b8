// Tests how text is made printable: control characters for terminals are escaped.
#include <gtest/gtest.h>

#include "base/text.h"

namespace shardmark {
namespace {

TEST(Text, ControlCharactersAreShown) {
  EXPECT_EQ(printable("red \x1b[31m"), "red \\x1b[31m");
  EXPECT_EQ(printable("bell\a, delete\x7f, return\r"), "bell\\x07, delete\\x7f, return\\x0d");
  EXPECT_EQ(printable(std::string("nil\0.", 5)), "nil\\x00.");
  EXPECT_EQ(printable("CSI in 8 bits: \xc2\x9b"
                      "31m"),
            "CSI in 8 bits: \\xc2\\x9b31m");
  EXPECT_EQ(printable("two\nlines"), "two\nlines");
  EXPECT_EQ(printable("two\nlines", ""), "two\\x0alines");
}

TEST(Text, Utf8StaysAndOtherBytesAreShown) {
  const std::string valid = "größer 模型 \xf0\x9f\x98\x80 \xc2\xa0";
  EXPECT_EQ(printable(valid), valid);
  EXPECT_EQ(printable("\xff \xc3"), "\\xff \\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // an overlong encoding
}

TEST(Text, QuotesAreShortAndCutBetweenCharacters) {
  EXPECT_EQ(quoted_line("a\nb\x1b"), "'a\\x0ab\\x1b'");
  EXPECT_EQ(quoted_line(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(quoted_line(std::string(59, 'x') + "ü"), "'" + std::string(59, 'x') + "...'");
}

TEST(Text, WordsOfAShellAreQuotedWhereTheyNeedIt) {
  EXPECT_EQ(shell_line({"mpirun", "-n", "2", "--x=a:b,c", "results/x-0001.h5", "50%"}),
            "mpirun -n 2 --x=a:b,c results/x-0001.h5 50%");
  EXPECT_EQ(shell_line({"gpt2(layers=2)", "a b", "", "it's", "$HOME", "~", "*"}),
            "'gpt2(layers=2)' 'a b' '' 'it'\\''s' '$HOME' '~' '*'");
  EXPECT_EQ(shell_word("a\x1b[31m'\\\n"), R"($'a\033[31m\'\\\012')");
}

}  // namespace
}  // namespace shardmark

// Tests how all_to_all_v divides the data among ranks: nothing is lost or added, and the expected rank is the
// busiest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "specs/parts.h"
#include "strategies/choice_kinds.h"

namespace shardmark::specs {
namespace {

Choice parts_of(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, parts_kind().options(choice.name), "parts");
}

TEST(SharedOut, EveryRankSendsAllThatItHas) {
  for (const char* text :
       {"equal", "hot(share=0.5)", "hot(share=0)", "hot(share=1)", "zipf(exponent=1.3)", "zipf(exponent=0)"})
    for (const int64_t ranks : {1, 2, 3, 7, 64})
      for (const int64_t elements : {0, 1, 5, 1000, 1000003}) {
        const Parts parts = share_out(parts_of(text), ranks, elements);
        int64_t received = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(parts.sent_by(rank), elements) << text;
          received += parts.received_by(rank);
        }
        EXPECT_EQ(received, ranks * elements) << text;
      }
}

TEST(SharedOut, EqualPartsAreThoseOfAllToAll) {
  const Parts parts = share_out(parts_of("equal"), 4, 4000);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) EXPECT_EQ(parts.between(i, j), 1000);
  EXPECT_EQ(parts.busiest(), 4000);
  EXPECT_DOUBLE_EQ(parts.moved(), 3000);
}

TEST(SharedOut, TheHotRankReceivesMost) {
  const Parts parts = share_out(parts_of("hot(share=0.5)"), 4, 1200);
  EXPECT_EQ(parts.between(3, 0), 600);
  EXPECT_EQ(parts.between(3, 1), 200);
  EXPECT_EQ(parts.busiest(), 2400);  // of 4 x 1200 in total
  EXPECT_DOUBLE_EQ(parts.moved(), (600 + 3 * 1000) / 4.0);
}

// Only what the busiest rank exchanges with other ranks uses its link. What it keeps does not move.
TEST(SharedOut, OwnPartsGoOverNoLink) {
  EXPECT_EQ(share_out(parts_of("equal"), 4, 4000).busiest_with_others(), 3000);
  EXPECT_EQ(share_out(parts_of("hot(share=0.5)"), 4, 1200).busiest_with_others(), 3 * 600);
  EXPECT_EQ(Parts(Parts::Rows{{9, 0}, {0, 9}}).busiest_with_others(), 0);
  EXPECT_EQ(Parts(Parts::Rows{{0, 9}, {9, 0}}).busiest_with_others(), 9);
  // Rank 1 sends 10. The 90 that rank 0 keeps do not count.
  EXPECT_EQ(Parts(Parts::Rows{{90, 1, 2}, {7, 0, 3}, {0, 0, 0}}).busiest_with_others(), 10);
  EXPECT_EQ(Parts(Parts::Rows{{5}}).busiest_with_others(), 0);
}

// A plan may have so many ranks that a matrix of their parts would not fit in memory.
TEST(SharedOut, PartsOfAMillionRanksAreOneRow) {
  const Parts parts = share_out(parts_of("zipf"), 1 << 20, 1 << 24);
  EXPECT_EQ(parts.rows().size(), 1u);
  EXPECT_EQ(parts.sent_by(1 << 19), 1 << 24);
  EXPECT_EQ(Parts(Parts::Rows{{1, 2}, {1, 2}}).rows().size(), 1u);
  EXPECT_EQ(Parts(Parts::Rows{{1, 2}, {2, 1}}).rows().size(), 2u);
}

TEST(SharedOut, ZipfFallsByItsExponent) {
  const Parts parts =
      share_out(parts_of("zipf(exponent=1)"), 3, 1100);  // parts are in the ratio 1 : 1/2 : 1/3
  EXPECT_EQ(parts.between(1, 0), 600);
  EXPECT_EQ(parts.between(1, 1), 300);
  EXPECT_EQ(parts.between(1, 2), 200);
}

class Counts : public ::testing::Test {
 protected:
  Counts() { std::filesystem::create_directories(folder_); }
  ~Counts() override { std::filesystem::remove_all(folder_); }
  Parts read(const std::string& text, int64_t ranks) {
    std::ofstream(folder_ + "/counts.csv") << text;
    return share_out(parts_of("counts(file=counts.csv)"), ranks, 1000, folder_);
  }
  void refuses(const std::string& text, int64_t ranks, const std::string& words) {
    try {
      read(text, ranks);
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(words));
    }
  }
  std::string folder_ = ::testing::TempDir() + "parts-" + std::to_string(::getpid());
};

TEST_F(Counts, OfAFileAreScaledToTheSenderThatSendsMost) {
  const Parts parts = read("# tokens\n1, 3\n\n2 0\n", 2);
  EXPECT_EQ(parts.between(0, 0), 250);
  EXPECT_EQ(parts.between(0, 1), 750);
  EXPECT_EQ(parts.between(1, 0), 500);
  EXPECT_EQ(parts.between(1, 1), 0);
}

TEST_F(Counts, OfOneRowAreEverySenders) { EXPECT_EQ(read("1 4\n", 2).between(1, 1), 800); }

TEST_F(Counts, MayBeOfASpreadsheet) {
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "1;4\r\n",
                 2)
                .between(1, 1),
            800);
  refuses("0,5;1\n", 2, "counts.csv:1: expected a count from 0, got '0,5'");
}

TEST_F(Counts, AreRefusedByLine) {
  refuses("1 2\n3 x\n", 2, "counts.csv:2: expected a count from 0, got 'x'");
  refuses("1 -2\n", 2, "counts.csv:1: expected a count");
  refuses("1 nan\n", 2, "counts.csv:1: expected a count");
  refuses("1 2 3\n", 2, "counts.csv:1: 3 counts, for 2 ranks");
  refuses("1\n", 2, "counts.csv:1: 1 count, for 2 ranks");
  refuses("1 2\n", 1, "counts.csv:1: 2 counts, for 1 rank;");
  refuses("1 2\n1 2\n1 2\n", 2, "3 rows of counts, for 2 ranks");
  refuses("", 2, "0 rows of counts");
  refuses("0 0\n", 2, "every count is 0");
  EXPECT_THROW(share_out(parts_of("counts(file=none.csv)"), 2, 8, folder_), UsageError);
}

}  // namespace
}  // namespace shardmark::specs

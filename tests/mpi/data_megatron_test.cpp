// Tests Megatron-LM's indexed datasets: tokens of every type, documents from the index, and that damage is
// refused.
// RANKS 1
#include "data/files/token_files.h"
#include "tests/mpi/token_files.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Megatron : public TokenFiles {
 protected:
  std::string refusal_of(const std::string& index) {
    write("m.idx", index);
    return refusal([&] { source("m"); });
  }
};

TEST_F(Megatron, GivesTokensOfEveryType) {
  const auto expect_tokens = [&](const char* name) {
    const auto made = source(name);
    ASSERT_EQ(made->size(), 2);
    EXPECT_TRUE(at::equal(made->fetch({{1, 0}}).targets[0], at::arange(11, 21, at::kLong)));
  };
  megatron<uint8_t>(1, {9, 4, 12}, {0, 3});
  for (const char* name : {"m", "m.bin", "m.idx", "*"}) expect_tokens(name);
  megatron<int8_t>(2, {9, 4, 12}, {0, 3}), expect_tokens("m");
  megatron<int16_t>(3, {9, 4, 12}, {0, 3}), expect_tokens("m");
  megatron<int32_t>(4, {9, 4, 12}, {0, 3}), expect_tokens("m");
  megatron<int64_t>(5, {9, 4, 12}, {0, 3}), expect_tokens("m");
  megatron<uint16_t>(8, {9, 4, 12}, {0, 3}), expect_tokens("m");
}

TEST_F(Megatron, KnowsWhereDocumentsBegin) {
  megatron(8, {9, 0, 4, 12, 7}, {0, 2, 3, 3, 5});  // one document has two sequences, one has none
  const TokenFile file(path("m.bin"));
  EXPECT_THAT(file.index()->document_starts(0, 32), ElementsAre(0, 9, 13, 13));
  EXPECT_THAT(file.index()->document_starts(1, 9), ElementsAre());
  EXPECT_THAT(file.index()->document_starts(9, 13), ElementsAre(9));
  EXPECT_THAT(file.index()->document_starts(14, 32), ElementsAre());
}

TEST_F(Megatron, OtherBytesOfAnIndexAreOtherContent) {
  megatron(8, {9, 4, 12}, {0, 3});
  const std::string content = source("m")->content();
  megatron(8, {9, 4, 12}, {0, 2, 3});
  EXPECT_NE(source("m")->content(), content);
}

TEST_F(Megatron, RefusesDamage) {
  const std::string good = megatron(8, {9, 4, 12}, {0, 1, 3});
  const auto with = [&](size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  const auto number = [](auto value) { return bytes_of(std::vector{value}); };
  EXPECT_EQ(refusal_of(good), "accepted");
  EXPECT_THAT(refusal_of(with(0, "X")),
              AllOf(HasSubstr("m.idx' does not start with MMIDIDX"), HasSubstr("m.bin' again")));
  EXPECT_THAT(refusal_of(with(9, "\2")), HasSubstr("is of version 2, only version 1"));
  EXPECT_THAT(refusal_of(with(17, "\6")), HasSubstr("says type 6 of its tokens"));
  EXPECT_THAT(refusal_of(with(17, "\5")), HasSubstr("tokens of 8 bytes, of which the 50 bytes of"));
  EXPECT_THAT(refusal_of(megatron(8, {}, {0})), HasSubstr("m.idx' holds no sequences"));
  megatron(8, {9, 4, 12}, {0, 1, 3});
  EXPECT_THAT(refusal_of(with(18, number(int64_t{4}))),
              HasSubstr("do not hold 4 sequences and 3 ends of documents"));
  EXPECT_THAT(refusal_of(with(18, number(INT64_MAX))), HasSubstr("do not hold"));
  EXPECT_THAT(refusal_of(with(26, number(int64_t{-1}))), HasSubstr("do not hold"));
  EXPECT_THAT(refusal_of(with(18, bytes_of(std::vector<int64_t>{0, INT64_MAX}))), HasSubstr("do not hold"));
  EXPECT_THAT(refusal_of(good + "\1\1\1"), HasSubstr("do not hold"));  // the modes of a multimodal dataset
  EXPECT_THAT(refusal_of(with(38, number(5))), HasSubstr("has sequence 1 of 5 tokens from byte 18"));
  EXPECT_THAT(refusal_of(with(42, number(13))),
              AllOf(HasSubstr("has sequence 2 of 13 tokens from byte 26"), HasSubstr("at byte 50")));
  EXPECT_THAT(refusal_of(with(46, number(int64_t{2}))), HasSubstr("has its first sequence at byte 2"));
  EXPECT_THAT(refusal_of(with(54, number(int64_t{-18}))),
              HasSubstr("has sequence 0 of 9 tokens from byte 0"));
  EXPECT_THAT(refusal_of(with(78, number(int64_t{4}))), HasSubstr("do not ascend from 0 to 3"));
  EXPECT_THAT(refusal_of(with(86, number(int64_t{2}))), HasSubstr("do not ascend from 0 to 3"));
  EXPECT_THAT(refusal_of(good.substr(0, 20)), HasSubstr("is 20 bytes, shorter than its header of 34"));
  fs::remove(path("m.idx"));
  EXPECT_THAT(refusal([&] { source("m"); }),
              HasSubstr("m.bin' is 50 bytes, shorter than llm.c's header of 1024"));
  EXPECT_THAT(refusal([&] { source("m.idx"); }), HasSubstr("no file matches"));
  fs::remove(path("m.bin"));
  write("m.idx", good);
  EXPECT_THAT(refusal([&] { source("m.idx"); }), HasSubstr("m.bin': No such file"));
}

// If any byte of the index is changed, it is refused, or all its documents are still inside the tokens.
TEST_F(Megatron, NoFlippedByteIsFollowed) {
  const std::string good = megatron(8, {9, 4, 12}, {0, 1, 3});
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (const int flip : {1, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      write("m.idx", bad);
      refused += refusal([&] {
                   const TokenFile file(path("m.bin"));
                   for (const int64_t start : file.index()->document_starts(0, file.size()))
                     EXPECT_TRUE(0 <= start && start < file.size()) << at;
                 }) != "accepted";
    }
  EXPECT_GT(refused, 4 * std::ssize(good) - 10)
      << "the type, and the document between the first and the last, have other values that are possible";
}

// When a large index is opened, only samples of it are checked. The rest is checked where it is used.
TEST_F(Megatron, ChecksWhatItUsesOfALargeIndex) {
  const int64_t count = 400'000;
  const std::vector<int32_t> lengths(count, 1);
  std::vector<int64_t> documents(count + 1);
  std::iota(documents.begin(), documents.end(), 0);
  std::string bytes = megatron(8, lengths, documents);
  const int64_t between = 5'000;
  const int64_t far = -3;
  std::memcpy(bytes.data() + 34 + 12 * count + 8 * between, &far, sizeof far);
  write("m.idx", bytes);
  const TokenFile file(path("m.bin"));
  EXPECT_THAT(file.index()->document_starts(300'000, 300'002), ElementsAre(300'000, 300'001));
  EXPECT_THAT(refusal([&] { file.index()->document_starts(4'999, 5'001); }),
              HasSubstr("has document 5000 from sequence -3 and byte -1 on"));
}

}  // namespace
}  // namespace shardmark

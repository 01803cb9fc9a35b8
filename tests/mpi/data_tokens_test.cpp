// Tests files of tokens: the windows that samples are made of, and that damage is refused.
// RANKS 1
#include "tests/mpi/token_files.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LlmcFiles : public TokenFiles {
 protected:
  std::string refusal_of(const std::string& content, int64_t vocabulary = 1000) {
    write("t.bin", content);
    return refusal([&] { source("t.bin", {}, vocabulary); });
  }
};

TEST_F(LlmcFiles, GiveWindowsAndTheirNextTokens) {
  write("t.bin", file(20240520, 1, 51, 51));
  const auto five = source();
  ASSERT_EQ(five->size(), 5);
  const auto batch = five->fetch({{4, 0}, {0, 7}});
  EXPECT_TRUE(at::equal(batch.inputs[0], at::arange(40, 50, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.targets[0], at::arange(41, 51, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.inputs[1], at::arange(0, 10, at::kLong) * 3));
  write("t.bin", file(20240520, 1, 50, 50));  // the last target of the fifth window is missing
  EXPECT_EQ(source()->size(), 4);
}

// Somebody may truncate the file during a run. The run then gets an error instead of a fatal signal.
TEST_F(LlmcFiles, MayBeCut) {
  write("t.bin", file(20240520, 1, 4001, 4001));
  const auto cut = source();
  fs::resize_file(path("t.bin"), 2000);
  EXPECT_EQ(cut->fetch(first(1)).inputs.size(0), 1);
  EXPECT_THAT(refusal([&] {
                cut->fetch({{399, 0}});
              }),
              AllOf(HasSubstr("t.bin' had 9026 bytes when it was opened"), HasSubstr("cut since")));
  EXPECT_THAT(refusal([&] { cut->content(); }), HasSubstr("cut since"));
}

TEST_F(LlmcFiles, OfLlama3Have32Bits) {
  write("t.bin", file<uint32_t>(20240801, 7, 51, 51, 128));
  EXPECT_TRUE(at::equal(source("t.bin", {}, 128'000)->fetch({{4, 0}}).targets[0],
                        at::arange(41, 51, at::kLong) * 384));
}

// The error names the position of the token. Large files are only sampled before the first step; the other
// tokens are checked when they are read.
TEST_F(LlmcFiles, RefuseATokenThatTheModelLacks) {
  EXPECT_THAT(
      refusal_of(file(20240520, 1, 400, 400), 999),
      AllOf(
          HasSubstr("t.bin' (llm.c's format for GPT-2's vocabulary of 50257): token 999 at position 333 is "),
          HasSubstr("not in the model's vocabulary of 999")));
  megatron<int16_t>(3, {30}, {0, 1});
  EXPECT_EQ(refusal([&] { source("m", {}, 30); }), "accepted");
  EXPECT_THAT(refusal([&] { source("m", {}, 29); }),
              HasSubstr("m.bin' (Megatron-LM's format): token 29 at position 29"));

  const int32_t count = 20'000'000, far = 10'004;
  std::string much = file(20240520, 1, count, count, uint16_t{1}, /*modulo=*/999);
  const auto put = [&](int64_t position, uint16_t token) {
    std::memcpy(much.data() + 1024 + 2 * position, &token, 2);
  };
  put(far, 1000);
  write("t.bin", much);
  const auto accepted = source();
  EXPECT_EQ(accepted->fetch({{999, 0}, {1001, 0}}).num_samples(), 2);
  EXPECT_THAT(refusal([&] { accepted->fetch({{1000, 0}}); }), HasSubstr("token 1000 at position 10004"));
  put(count - 1, 1000);
  EXPECT_THAT(refusal_of(much), HasSubstr("token 1000 at position 19999999"));
}

// Each window is within one file. The tokens at the end of a file that do not fill a window are left out.
TEST_F(LlmcFiles, LieBesideEachOtherInTheOrderOfTheirPaths) {
  write("b.bin", file(20240520, 1, 51, 51));
  write("a.bin", file<uint32_t>(20240801, 7, 30, 30));
  write("c.bin", file(20240520, 1, 9, 9));
  const auto all = source("*.bin");
  ASSERT_EQ(all->size(), 2 + 5);
  const auto batch = all->fetch({{1, 0}, {2, 0}, {6, 0}});
  EXPECT_TRUE(at::equal(batch.inputs[0], at::arange(10, 20, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.inputs[1], at::arange(0, 10, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.inputs[2], at::arange(40, 50, at::kLong) * 3));
  const std::string content = all->content();
  fs::rename(path("c.bin"), path("d.bin"));
  EXPECT_EQ(source("*.bin")->content(), content);
  write("c.bin", file(20240520, 1, 9, 9));
  EXPECT_NE(source("*.bin")->content(), content);
}

// If the token that begins documents is in no file, everything would be one document, and the losses would be
// those of concatenated documents.
TEST_F(LlmcFiles, RefuseDocumentsThatBeginNowhere) {
  write("t.bin", file(20240520, 1, 400, 400));  // tokens 0 to 999 in steps of three, then 2 to 197
  const auto refusal_with = [&](const Options& options) {
    return refusal([&] { source("t.bin", options); });
  };
  for (const char* documents : {"packed", "masked"}) {
    EXPECT_EQ(refusal_with({{"documents", documents}, {"begin", 3}}), "accepted");
    EXPECT_EQ(refusal_with({{"documents", documents}, {"end", 999}}), "accepted");
    EXPECT_THAT(refusal_with({{"documents", documents}, {"begin", 4}}),
                AllOf(HasSubstr("t.bin': no document begins with token 4"), HasSubstr("option 'begin'")));
    EXPECT_THAT(refusal_with({{"documents", documents}, {"begin", 3}, {"end", 7}}),
                HasSubstr("t.bin': no document ends with token 7"));
    EXPECT_THAT(refusal_with({{"documents", documents}, {"begin", 50256}}),
                HasSubstr("begin 50256 is not in the model's vocabulary of 1000"));
  }
  write("u.bin", file(20240520, 1, 40, 40));  // every file is checked; this one has tokens 0 to 117
  EXPECT_THAT(refusal([&] {
                source("?.bin", {{"documents", "packed"}, {"begin", 300}});
              }),
              HasSubstr("u.bin': no document begins with token 300"));

  // A document is also found far beyond the part that is checked before the first step.
  const int32_t count = 20'000'000;
  std::string much = file(20240520, 1, count, count, uint16_t{1}, /*modulo=*/999);
  const uint16_t token = 1;
  std::memcpy(much.data() + 1024 + 2 * (count - 10'004), &token, 2);
  write("t.bin", much);
  EXPECT_EQ(refusal_with({{"documents", "packed"}, {"begin", 1}}), "accepted");
  EXPECT_THAT(refusal_with({{"documents", "packed"}, {"begin", 2}}),
              HasSubstr("no document begins with token 2"));
}

// The index says where documents begin. A token that is in no file must not override it silently.
TEST_F(LlmcFiles, KeepTheIndexOfMegatron) {
  megatron<int16_t>(3, {10, 20}, {0, 1, 2});
  EXPECT_EQ(refusal([&] { source("m", {{"documents", "masked"}}); }), "accepted");
  EXPECT_THAT(refusal([&] {
                source("m", {{"documents", "masked"}, {"begin", 500}});
              }),
              AllOf(HasSubstr("m.bin': no document begins with token 500"),
                    HasSubstr("leave it out: Megatron-LM's index says")));
  fs::remove(path("m.idx"));
  EXPECT_THAT(refusal([&] { source("m"); }),
              AllOf(HasSubstr("m.bin' is 60 bytes"), HasSubstr("has no index"), HasSubstr("m.idx'")));
}

TEST_F(LlmcFiles, RefuseDamage) {
  EXPECT_EQ(refusal_of(file(20240520, 1, 400, 400)), "accepted");
  EXPECT_THAT(refusal_of(file(20240520, 1, 400, 399)),
              AllOf(HasSubstr("1822 bytes"), HasSubstr("400 tokens: 1824")));
  EXPECT_THAT(refusal_of(file(20240520, 1, 400, 400) + "x"), HasSubstr("1825 bytes"));
  EXPECT_THAT(refusal_of(file(20240520, 1, -1, 400)), HasSubstr("-1 tokens"));
  EXPECT_THAT(refusal_of(file(20240521, 1, 400, 400)),
              HasSubstr("magic number 20240520 (GPT-2's tokens) or 20240801"));
  EXPECT_THAT(refusal_of(file(20240520, 7, 400, 400)), HasSubstr("version 7"));
  EXPECT_THAT(refusal_of(file<uint32_t>(20240801, 1, 400, 400)), HasSubstr("are read in version 7"));
  EXPECT_THAT(refusal_of(file(20240801, 7, 400, 400)), HasSubstr("400 tokens: 2624 bytes"));
  EXPECT_THAT(refusal_of(file(20240520, 1, 10, 10)), HasSubstr("hold 10 tokens, one sample needs 11"));
  EXPECT_THAT(refusal_of(""), HasSubstr("0 bytes, shorter than llm.c's header"));
  EXPECT_THAT(refusal([&] { source("none.bin"); }),
              AllOf(HasSubstr("no file matches"), HasSubstr("none.bin")));
}

}  // namespace
}  // namespace shardmark

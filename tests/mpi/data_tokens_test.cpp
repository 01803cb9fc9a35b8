// Token files: windows of their streams; damage is refused.
// RANKS 1
#include "specs/specs.h"
#include "tests/mpi/data_testing.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

class TokenFiles : public DataFiles {
 protected:
  // Tokens 0, 3, 6 ... modulo 1000.
  template <class Token = uint16_t>
  static std::string file(int32_t magic, int32_t version, int32_t claimed, int32_t count, Token scale = 1) {
    std::vector<int32_t> header(256, 0);
    header[0] = magic, header[1] = version, header[2] = claimed;
    std::vector<Token> tokens(static_cast<size_t>(count));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(3 * i % 1000 * scale);
    return bytes_of(header) + bytes_of(tokens);
  }
  std::unique_ptr<DataSource> source(const std::string& name = "t.bin", int64_t vocabulary = 1000) const {
    const Choice choice =
        resolve({"tokens", {{"files", path(name)}}}, specs::data_specs().at("tokens").options, "data");
    return make_source(choice, {{Kind::tokens, {10}, vocabulary}, at::kFloat, 1});
  }
  std::string refusal_of(const std::string& content, int64_t vocabulary = 1000) {
    write("t.bin", content);
    return refusal([&] { source("t.bin", vocabulary); });
  }
};

TEST_F(TokenFiles, GiveWindowsAndTheirNextTokens) {
  write("t.bin", file(20240520, 1, 51, 51));
  const auto five = source();
  ASSERT_EQ(five->size(), 5);
  const auto batch = five->fetch({{4, 0}, {0, 7}});
  EXPECT_TRUE(at::equal(batch.inputs[0], at::arange(40, 50, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.targets[0], at::arange(41, 51, at::kLong) * 3));
  EXPECT_TRUE(at::equal(batch.inputs[1], at::arange(0, 10, at::kLong) * 3));
  write("t.bin", file(20240520, 1, 50, 50));  // the fifth window's last target is missing
  EXPECT_EQ(source()->size(), 4);
}

// By others, while a run reads it: an error of that run, and no signal that ends it.
TEST_F(TokenFiles, MayBeCut) {
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

TEST_F(TokenFiles, OfLlama3Have32Bits) {
  write("t.bin", file<uint32_t>(20240801, 7, 51, 51, 128));
  EXPECT_TRUE(
      at::equal(source("t.bin", 128'000)->fetch({{4, 0}}).targets[0], at::arange(41, 51, at::kLong) * 384));
}

// Windows lie in one file each: what does not fill one at a file's end is left out.
TEST_F(TokenFiles, LieBesideEachOtherInTheOrderOfTheirPaths) {
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

TEST_F(TokenFiles, RefuseDamage) {
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
  EXPECT_THAT(refusal_of(""), HasSubstr("0 bytes, shorter than its header"));
  EXPECT_THAT(refusal_of(file(20240520, 1, 400, 400), 999),
              HasSubstr("token 999, above the model's vocabulary of 999"));
  EXPECT_THAT(refusal([&] { source("none.bin"); }),
              AllOf(HasSubstr("no file matches"), HasSubstr("none.bin")));
}

}  // namespace
}  // namespace shardmark

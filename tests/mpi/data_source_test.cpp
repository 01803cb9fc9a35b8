// Tests all data sources but CIFAR-10: a sample depends only on (seed, epoch, index), and damage is refused.
// RANKS 1
#include "base/glob.h"
#include "tests/mpi/data_testing.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const specs::SampleShape kBytes = {Kind::tokens, {8}, 256};

TEST(Sources, UnknownNameListsTheKnown) {
  EXPECT_THAT(refusal("imagenet", Options(), kCifarImage), HasSubstr("cifar10, synthetic, text, tokens"));
}

TEST(Sources, MustFitTheModel) {
  EXPECT_THAT(refusal("tokens", {{"files", "x"}}, kCifarImage),
              HasSubstr("data 'tokens': the model takes no tokens"));
  EXPECT_THAT(refusal("text", {{"files", "x"}}, {Kind::tokens, {8}, 255}), HasSubstr("a vocabulary of 256"));
  const Options cifar10 = {{"dir", "x"}, {"augment", true}};
  EXPECT_THAT(refusal("cifar10", cifar10, kBytes), HasSubstr("no images of 3 x 32 x 32"));
  EXPECT_THAT(refusal("cifar10", cifar10, {Kind::image, {3, 224, 224}, 10}),
              HasSubstr("no images of 3 x 32 x 32"));
  EXPECT_THAT(refusal("cifar10", cifar10, {Kind::image, {3, 32, 32}, 9}), HasSubstr("10 classes"));
}

TEST(Synthetic, MakesAnySampleByItsIndex) {
  for (const auto& sample :
       {kCifarImage, specs::SampleShape{Kind::rows, {17}, 5}, specs::SampleShape{Kind::tokens, {33}, 1000}}) {
    const auto source = source_of("synthetic", {{"size", 1000}}, sample);
    EXPECT_EQ(source->size(), 1000);
    const Batch batch = source->fetch(first(1000));
    const Batch one = source->fetch({{999, 3}});
    EXPECT_TRUE(at::equal(batch.inputs[999], one.inputs[0]));
    EXPECT_TRUE(at::equal(batch.targets[999], one.targets[0]));
    EXPECT_TRUE(same(batch, source_of("synthetic", {{"size", 1000}}, sample)->fetch(first(1000))));
    EXPECT_FALSE(
        same(batch, source_of("synthetic", {{"size", 1000}}, sample, at::kFloat, 2)->fetch(first(1000))));
    EXPECT_FALSE(at::equal(batch.inputs[0], batch.inputs[1]));
    EXPECT_GE(batch.targets.min().item<int64_t>(), 0);
    EXPECT_LT(batch.targets.max().item<int64_t>(), sample.num_classes);
  }
}

TEST(Synthetic, GivesValuesOfUnitVarianceInTheAskedDtype) {
  const auto batch = source_of("synthetic", {{"size", 100}}, kCifarImage, at::kDouble)->fetch(first(100));
  EXPECT_EQ(batch.inputs.scalar_type(), at::kDouble);
  EXPECT_EQ(batch.inputs.sizes(), (std::vector<int64_t>{100, 3, 32, 32}));
  EXPECT_EQ(batch.targets.sizes(), (std::vector<int64_t>{100}));
  EXPECT_NEAR(batch.inputs.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(batch.inputs.var().item<double>(), 1, 0.05);
}

TEST(Synthetic, CanBeLearned) {
  const auto images = source_of("synthetic", {{"size", 400}}, kCifarImage)->fetch(first(400));
  const auto flat = images.inputs.flatten(1);
  int64_t right = 0;  // how often the nearest of the first 200 images has the right class, for the second 200
  for (int64_t i = 200; i < 400; ++i) {
    const auto distances = (flat.narrow(0, 0, 200) - flat[i]).square().sum(1);
    right += images.targets[distances.argmin().item<int64_t>()].item<int64_t>() ==
             images.targets[i].item<int64_t>();
  }
  EXPECT_GT(right, 190);

  const auto text = source_of("synthetic", {{"size", 500}}, {Kind::tokens, {64}, 50})->fetch(first(500));
  EXPECT_TRUE(at::equal(text.inputs.slice(1, 1), text.targets.slice(1, 0, 63)));
  const auto pairs = at::bincount((text.inputs * 50 + text.targets).flatten(), {}, 2500).view({50, 50});
  const auto best = std::get<0>(pairs.max(1)).sum().item<double>() / pairs.sum().item<double>();
  EXPECT_GT(best, 0.85);  // the share of the most frequent next token, which should be slightly above 7/8
}

TEST(Synthetic, HoldsOutWhatCanBeEvaluated) {
  const auto held_out = [](int64_t size) {
    const auto source =
        make_source({"synthetic", {{"size", size}}}, {kBytes, at::kFloat, 1, /*holds_out=*/true});
    EXPECT_EQ(source->size() + source->num_held_out(), size);
    return source->num_held_out();
  };
  EXPECT_EQ(held_out(2), 1);
  EXPECT_EQ(held_out(100'000), 5'000);
  EXPECT_EQ(held_out(int64_t{1} << 40), 10'000);
}

TEST_F(DataFiles, TextIsTheBytesInPathOrder) {
  write("b.md", "mnopqrstu");
  write("a/x.md", "abcdef");
  write("a/deep/y.md", "ghijkl\xff");
  const std::string patterns = path("b.md") + " " + path("**/*.md");  // b.md is used once, and comes last
  const auto source = source_of("text", {{"files", patterns}}, {Kind::tokens, {7}, 256});
  ASSERT_EQ(source->size(), 3);  // 22 bytes
  const auto batch = source->fetch({{0, 0}, {2, 0}});
  const auto bytes = [](const std::string& text) {
    auto tensor = at::empty({std::ssize(text)}, at::kLong);
    for (size_t i = 0; i < text.size(); ++i) tensor[static_cast<int64_t>(i)] = static_cast<uint8_t>(text[i]);
    return tensor;
  };
  EXPECT_TRUE(at::equal(batch.inputs[0], bytes("ghijkl\xff")));
  EXPECT_TRUE(at::equal(batch.targets[0], bytes("hijkl\xff"
                                                "a")));
  EXPECT_TRUE(at::equal(batch.inputs[1], bytes("nopqrst")));
  EXPECT_TRUE(at::equal(batch.targets[1], bytes("opqrstu")));
}

TEST_F(DataFiles, OtherBytesAreOtherContent) {
  const auto content = [&](const std::string& text) {
    write("a.txt", text);
    return source_of("text", {{"files", path("a.txt")}}, {Kind::tokens, {3}, 256})->content();
  };
  EXPECT_EQ(content("abcdefgh"), content("abcdefgh"));
  for (size_t at = 0; at < 8; ++at) {
    std::string changed = "abcdefgh";
    ++changed[at];
    EXPECT_NE(content(changed), content("abcdefgh")) << at;
  }
  EXPECT_EQ(source_of("synthetic", {{"size", 8}}, kBytes)->content(), "");
}

// If there is much content, evenly spaced pieces are hashed, including the first and the last byte.
TEST_F(DataFiles, MuchContentIsSampled) {
  std::vector<uint8_t> bytes(200 << 20);
  const uint64_t hash = hash_content(bytes);
  const auto seen = [&](size_t at) {
    bytes[at] = 1;
    const bool differs = hash_content(bytes) != hash;
    bytes[at] = 0;
    return differs;
  };
  const size_t last = bytes.size() - 1;
  EXPECT_TRUE(seen(0) && seen(last) && seen(last - 16383));
  EXPECT_TRUE(seen((bytes.size() - 16384) / 4095));
  EXPECT_FALSE(seen(20000)) << "the second piece begins at about 51 KB";
  bytes.resize(64 << 20);
  const uint64_t of_all = hash_content(bytes);
  bytes[20000] = 1;
  EXPECT_NE(hash_content(bytes), of_all);
}

TEST_F(DataFiles, TextRefusesWhatIsNotThere) {
  write("a.txt", "12345678");
  EXPECT_THAT(refusal("text", {{"files", path("*.md")}}, kBytes),
              AllOf(HasSubstr("no file matches"), HasSubstr("*.md")));
  EXPECT_THAT(refusal("text", {{"files", path("a.txt") + " " + path("none/**")}}, kBytes),
              HasSubstr("none/**"));
  EXPECT_THAT(refusal("text", {{"files", path("a.txt")}}, kBytes),
              HasSubstr("hold 8 bytes, one sample needs 9"));
  EXPECT_THAT(refusal("text", {{"files", ""}}, kBytes), HasSubstr("hold 0 bytes"));
}

TEST_F(DataFiles, PatternsMatchAsInAShell) {
  for (const char* name : {"a.cpp", "b.h", "sub/c.cpp", "sub/deep/d.cpp", "sub/.hidden.cpp", ".git/e.cpp"})
    write(name, "");
  const auto found = [this](const std::string& pattern) {
    std::string names;
    for (const auto& file : glob(path(pattern))) names += fs::relative(file, folder_).string() + " ";
    return names;
  };
  EXPECT_EQ(found("*.cpp"), "a.cpp ");
  EXPECT_EQ(found("**/*.cpp"), "a.cpp sub/c.cpp sub/deep/d.cpp ");
  EXPECT_EQ(found("sub/**/[cd].cpp"), "sub/c.cpp sub/deep/d.cpp ");
  EXPECT_EQ(found("**/**/*.cpp"), found("**/*.cpp"));
  EXPECT_EQ(found("*/c.cpp"), "sub/c.cpp ");
  EXPECT_EQ(found("sub/*/?.cpp"), "sub/deep/d.cpp ");
  EXPECT_EQ(found("./b.h"), "b.h ");
  EXPECT_EQ(found("sub"), "");
  EXPECT_EQ(found(".git/*"), ".git/e.cpp ");
}

}  // namespace
}  // namespace shardmark

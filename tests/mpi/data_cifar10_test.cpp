// Tests CIFAR-10's binary files: pixels, labels, augmentation, and all kinds of damage.
// RANKS 1
#include "tests/mpi/data_testing.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Cifar10Files : public DataFiles {
 protected:
  static constexpr int64_t kRecord = 3073, kFileBytes = 10000 * kRecord;
  // Creates five files of zeros, which are sparse and use no disk space. Tests write single records into
  // them.
  Cifar10Files() {
    for (int i = 1; i <= 5; ++i) resize(i, kFileBytes);
  }
  std::string file(int number) const { return path("data_batch_" + std::to_string(number) + ".bin"); }
  void resize(int number, int64_t bytes) const {
    std::ofstream(file(number), std::ios::app).close();
    fs::resize_file(file(number), static_cast<uintmax_t>(bytes));
  }
  void put(int number, int64_t record, const std::string& bytes) const {
    std::fstream out(file(number), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(record * kRecord);
    out << bytes;
  }
  std::unique_ptr<DataSource> source(bool augment, int64_t seed = 1,
                                     at::ScalarType dtype = at::kDouble) const {
    return source_of("cifar10", options(augment), kCifarImage, dtype, seed);
  }
  Options options(bool augment) const { return {{"dir", folder_.string()}, {"augment", augment}}; }
  std::string refused() const { return refusal("cifar10", options(false), kCifarImage); }
  // Returns a record whose pixel in channel c, row y and column x is 60 c + 2 y + x.
  static std::string record(char label) {
    std::string bytes(1, label);
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 32; ++x) bytes += static_cast<char>(60 * c + 2 * y + x);
    return bytes;
  }
  // Returns the normalized image of such a record, cropped at (top, left) of the image padded with black, and
  // mirrored if asked.
  static at::Tensor expected(int64_t top, int64_t left, bool mirrored) {
    auto padded = at::zeros({3, 40, 40}, at::kDouble);
    const auto steps = at::arange(32, at::kDouble);
    padded.slice(1, 4, 36).slice(2, 4, 36) +=
        60 * at::arange(3, at::kDouble).view({3, 1, 1}) + 2 * steps.view({32, 1}) + steps;
    const auto mean = at::tensor({0.4914, 0.4822, 0.4465}, at::kDouble).view({3, 1, 1});
    const auto deviation = at::tensor({0.2470, 0.2435, 0.2616}, at::kDouble).view({3, 1, 1});
    const auto crop = padded.slice(1, top, top + 32).slice(2, left, left + 32);
    return ((mirrored ? crop.flip({2}) : crop) / 255 - mean) / deviation;
  }
};

TEST_F(Cifar10Files, GiveNormalisedImagesAndLabels) {
  put(2, 9999, record(7));
  const auto batch = source(false)->fetch({{0, 0}, {19999, 0}});
  EXPECT_EQ(source(false)->size(), 50000);
  EXPECT_EQ(batch.inputs.sizes(), (std::vector<int64_t>{2, 3, 32, 32}));
  EXPECT_EQ(batch.targets[0].item<int64_t>(), 0);
  EXPECT_EQ(batch.targets[1].item<int64_t>(), 7);
  EXPECT_TRUE(at::allclose(batch.inputs[1], expected(4, 4, false), 1e-12, 1e-12));
  EXPECT_EQ(source(false, 1, at::kFloat)->fetch({{0, 0}}).inputs.scalar_type(), at::kFloat);
}

// Each augmented image is one of the 81 crops, mirrored or not. All of them appear about equally often.
TEST_F(Cifar10Files, AugmentByCropAndFlip) {
  put(1, 5, record(3));
  std::vector<Draw> draws;
  for (int64_t epoch = 0; epoch < 3000; ++epoch) draws.push_back({5, epoch});
  const auto images = source(true)->fetch(draws).inputs.flatten(1);
  std::vector<at::Tensor> placements;
  for (int64_t top = 0; top <= 8; ++top)
    for (int64_t left = 0; left <= 8; ++left)
      for (bool mirrored : {false, true}) placements.push_back(expected(top, left, mirrored).flatten());
  const auto distances = at::cdist(images, at::stack(placements), 2, /*compute_mode=*/2);
  const auto [nearest, which] = distances.min(1);
  EXPECT_LT(nearest.max().item<double>(), 1e-9);
  const auto counts = at::bincount(which, {}, 162);
  EXPECT_GE(counts.min().item<int64_t>(), 3);  // 18.5 are expected
  EXPECT_LE(counts.max().item<int64_t>(), 45);
}

TEST_F(Cifar10Files, AugmentBySeedEpochAndIndexAlone) {
  for (int64_t i = 0; i < 8; ++i) put(1, i, record(1));
  const auto batch = source(true)->fetch(first(8, 4));
  const auto again = source(true)->fetch({{7, 4}});
  EXPECT_TRUE(at::equal(batch.inputs[7], again.inputs[0]));
  EXPECT_FALSE(same(batch, source(true)->fetch(first(8, 5))));
  EXPECT_FALSE(same(batch, source(true, 2)->fetch(first(8, 4))));
  EXPECT_FALSE(at::equal(batch.inputs[0], batch.inputs[1]));
}

TEST_F(Cifar10Files, RefuseDamage) {
  const auto names = [](const std::string& what) {
    return AllOf(HasSubstr("data_batch_3.bin'"), HasSubstr(what), HasSubstr("cifar-10-binary.tar.gz"),
                 HasSubstr("https://www.cs.toronto.edu/~kriz/cifar.html"));
  };
  EXPECT_EQ(refused(), "accepted");
  put(3, 1234, "\x0a");
  EXPECT_THAT(refused(), names("label 10 in record 1234"));
  resize(3, kFileBytes - 1);
  EXPECT_THAT(refused(), names("30729999 bytes instead of 30730000"));
  resize(3, kFileBytes + 1);
  EXPECT_THAT(refused(), names("30730001 bytes"));
  resize(3, 0);
  EXPECT_THAT(refused(), names("is 0 bytes"));
  fs::remove(file(3));
  EXPECT_THAT(refused(), names("No such file"));
  fs::remove_all(folder_);
  EXPECT_THAT(refused(), AllOf(HasSubstr("data_batch_1.bin'"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace shardmark

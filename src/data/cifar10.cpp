// CIFAR-10 in its binary form. Five files of 10,000 records are for training and a sixth for evaluation; a
// record is a label and 3 x 32 x 32 bytes. Source: A. Krizhevsky,
// https://www.cs.toronto.edu/~kriz/cifar.html.
#include <array>

#include "base/glob.h"
#include "base/hash.h"
#include "data/source.h"

namespace shardmark::cifar10 {
namespace {

constexpr int64_t kFiles = 5, kRecords = 10000, kClasses = 10, kChannels = 3, kSide = 32, kPadding = 4;
constexpr int64_t kRecordBytes = 1 + kChannels * kSide * kSide;
// Mean and standard deviation of the training set's pixels per channel, as fractions of 255.
constexpr double kMean[kChannels] = {0.4914, 0.4822, 0.4465};
constexpr double kDeviation[kChannels] = {0.2470, 0.2435, 0.2616};
constexpr const char* kAdvice =
    "option 'dir' of data 'cifar10' must hold data_batch_1.bin to data_batch_5.bin and test_batch.bin, from "
    "cifar-10-binary.tar.gz at "
    "https://www.cs.toronto.edu/~kriz/cifar.html";

// The usual augmentation: a random crop of the image with a border of 4 black pixels, mirrored half of the
// time.
struct Crop {
  // The corner of the crop in the image; a negative value lies in the border.
  int64_t top = 0, left = 0;
  bool mirrored = false;
};

Crop random_crop(int64_t seed, const Draw& draw) {
  const uint64_t random = hash_of(seed, draw.epoch, draw.index);
  return {below(random, 2 * kPadding + 1) - kPadding, below(mix(random), 2 * kPadding + 1) - kPadding,
          (random & 1) != 0};
}

class Cifar10 : public DataSource {
 public:
  Cifar10(const Options& options, const DataContext& context)
      : augment_(options.at("augment").get<bool>()), dtype_(context.dtype), seed_(context.seed) {
    std::vector<std::string> names;
    for (int64_t i = 1; i <= kFiles; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
    if (context.holds_out) names.emplace_back("test_batch.bin");
    for (const auto& name : names) {
      files_.emplace_back(path_near(context.folder, options.at("dir").get<std::string>() + "/" + name),
                          kAdvice);
      check(files_.back());
    }
    for (size_t c = 0; c < kChannels; ++c)
      for (size_t byte = 0; byte < 256; ++byte)
        normalized_[c][byte] = (static_cast<double>(byte) / 255 - kMean[c]) / kDeviation[c];
  }

  int64_t size() const override { return kFiles * kRecords; }
  int64_t num_held_out() const override { return std::ssize(files_) * kRecords - size(); }

  std::string content() const override {
    uint64_t hash = kHashStart;
    for (const SampleFile& file : files_) hash = hash_content(file, hash);
    return hash_text(hash);
  }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    Batch batch{empty_on_host({std::ssize(draws), kChannels, kSide, kSide}, dtype_, pinned),
                empty_on_host({std::ssize(draws)}, at::kLong, pinned)};
    int64_t* targets = batch.targets.data_ptr<int64_t>();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype_, "cifar10", [&] {
      auto* inputs = batch.inputs.data_ptr<scalar_t>();
      std::array<uint8_t, kRecordBytes> record;
      for (const Draw& draw : draws) {
        files_.at(static_cast<size_t>(draw.index / kRecords))
            .read(draw.index % kRecords * kRecordBytes, record.data(), record.size());
        *targets++ = record[0];
        const bool augments = augment_ && draw.index < size();  // evaluation images stay as they are
        inputs = write_image(record.data() + 1, augments ? random_crop(seed_, draw) : Crop{}, inputs);
      }
    });
    return batch;
  }

 private:
  static void check(const SampleFile& file) {
    const auto fail = [&](const std::string& what) {
      throw UsageError("'" + file.path() + "' " + what + "; " + kAdvice);
    };
    if (file.size() != kRecords * kRecordBytes)
      fail("is " + std::to_string(file.size()) + " bytes instead of " +
           std::to_string(kRecords * kRecordBytes) + ": damaged");
    std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
    file.read(0, bytes.data(), bytes.size());
    for (int64_t record = 0; record < kRecords; ++record) {
      const int label = bytes[static_cast<size_t>(record * kRecordBytes)];
      if (label >= kClasses)
        fail("has label " + std::to_string(label) + " in record " + std::to_string(record) +
             ", above 9: damaged");
    }
  }

  // Returns where the next image begins.
  template <class T>
  T* write_image(const uint8_t* pixels, const Crop& at, T* out) const {
    const auto inside = [](int64_t i) { return i >= 0 && i < kSide; };
    for (size_t channel = 0; channel < kChannels; ++channel, pixels += kSide * kSide) {
      const auto& normalized = normalized_[channel];
      for (int64_t y = at.top; y < at.top + kSide; ++y) {
        const uint8_t* row = inside(y) ? pixels + y * kSide : nullptr;
        for (int64_t i = 0; i < kSide; ++i) {
          const int64_t x = at.left + (at.mirrored ? kSide - 1 - i : i);
          *out++ = static_cast<T>(normalized[row != nullptr && inside(x) ? row[x] : 0]);
        }
      }
    }
    return out;
  }

  bool augment_;
  at::ScalarType dtype_;
  int64_t seed_;
  std::vector<SampleFile> files_;
  std::array<std::array<double, 256>, kChannels> normalized_;  // [channel][byte]
};

std::unique_ptr<DataSource> make_cifar10(const Options& options, const DataContext& context) {
  return std::make_unique<Cifar10>(options, context);
}

const Registration<DataEntry> registered{"cifar10",
                                         {"CIFAR-10's training set, its binary files", make_cifar10}};

}  // namespace
}  // namespace shardmark::cifar10

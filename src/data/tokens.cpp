// Token files in llm.c's .bin format: 256 little-endian int32 (magic, version, number of tokens, zeros), then
// the tokens as uint16. Source: llm.c, dev/data/data_common.py.
#include <bit>

#include "base/glob.h"
#include "data/token_batch.h"

namespace shardmark {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie in memory");

constexpr int64_t kHeaderBytes = 256 * sizeof(int32_t), kTokenBytes = sizeof(uint16_t);
constexpr int32_t kMagic = 20240520, kVersion = 1;
constexpr const char* kAdvice =
    "data 'tokens' reads llm.c's .bin files (uint16 tokens), which its dev/data/*.py scripts write";

class Tokens : public DataSource {
 public:
  Tokens(const Options& options, const DataContext& context)
      : file_(path_near(context.folder, options.at("file").get<std::string>()), kAdvice),
        length_(context.sample.input.at(0)) {
    const int64_t count = check_header();
    size_ = num_windows(count, length_);
    if (size_ < 1)
      fail("holds " + std::to_string(count) + " tokens, one sample needs " + std::to_string(length_ + 1));
    // Reads the file once, so that a wrong vocabulary is known before the first step and not by a fault in a
    // kernel.
    const int64_t largest = largest_of(count);
    if (largest >= context.sample.num_classes)
      fail("holds token " + std::to_string(largest) + ", above the model's vocabulary of " +
           std::to_string(context.sample.num_classes));
    num_held_out_ = held_out_of(size_, context);
    size_ -= num_held_out_;
  }

  int64_t size() const override { return size_; }
  int64_t num_held_out() const override { return num_held_out_; }
  std::string content() const override { return hash_text(hash_content(file_)); }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    std::vector<uint16_t> window(static_cast<size_t>(length_) + 1);
    return token_batch(draws, length_, pinned, [&](const Draw& draw) {
      read(draw.index * length_, window);
      return std::span<const uint16_t>(window);
    });
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("'" + file_.path() + "' " + what + "; " + kAdvice);
  }

  void read(int64_t first, std::span<uint16_t> tokens) const {
    file_.read(kHeaderBytes + first * kTokenBytes, tokens.data(), tokens.size_bytes());
  }

  int64_t largest_of(int64_t count) const {
    std::vector<uint16_t> piece(1 << 19);
    uint16_t largest = 0;
    for (int64_t first = 0; first < count; first += std::ssize(piece)) {
      piece.resize(static_cast<size_t>(std::min(std::ssize(piece), count - first)));
      read(first, piece);
      largest = std::max(largest, *std::max_element(piece.begin(), piece.end()));
    }
    return largest;
  }

  int64_t check_header() const {
    int32_t header[3];
    const int64_t bytes = file_.size();
    if (bytes < kHeaderBytes) fail("is " + std::to_string(bytes) + " bytes, shorter than its header of 1024");
    file_.read(0, header, sizeof header);
    if (header[0] != kMagic)
      fail("starts with " + std::to_string(header[0]) + " instead of the magic number " +
           std::to_string(kMagic));
    if (header[1] != kVersion)
      fail("is of version " + std::to_string(header[1]) + ", only version " + std::to_string(kVersion) +
           " is read");
    const int64_t expected = kHeaderBytes + kTokenBytes * std::max(header[2], 0);
    if (header[2] < 0 || bytes != expected)
      fail("is " + std::to_string(bytes) + " bytes, but its header says " + std::to_string(header[2]) +
           " tokens: " + std::to_string(expected) + " bytes");
    return header[2];
  }

  SampleFile file_;
  int64_t length_, size_ = 0, num_held_out_ = 0;
};

std::unique_ptr<DataSource> make_tokens(const Options& options, const DataContext& context) {
  return std::make_unique<Tokens>(options, context);
}

const Registration<DataEntry> registered{"tokens",
                                         {"a token file in llm.c's .bin format (uint16)", make_tokens}};

}  // namespace
}  // namespace shardmark

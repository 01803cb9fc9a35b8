// The bytes of text files, concatenated in the order of their sorted paths. Each byte is a token.
#include "data/token_batch.h"

namespace shardmark::text_files {
namespace {

class Text : public DataSource {
 public:
  Text(const Options& options, const DataContext& context) : length_(context.sample.input.at(0)) {
    const std::string patterns = options.at("files").get<std::string>();
    const auto paths = matching_files("text", patterns, context.folder);
    for (const std::string& path : paths) {
      const SampleFile file(path, "check its permissions or narrow 'files' of data 'text'");
      const size_t before = bytes_.size();
      bytes_.resize(before + static_cast<size_t>(file.size()));
      file.read(0, bytes_.data() + before, static_cast<size_t>(file.size()));
    }
    size_ = num_windows(std::ssize(bytes_), length_);
    if (size_ < 1)
      throw UsageError("data 'text': the " + std::to_string(paths.size()) + " files of '" + patterns +
                       "' hold " + std::to_string(bytes_.size()) + " bytes, one sample needs " +
                       std::to_string(length_ + 1) + "; name more files or shorten the model's sequence");
    num_held_out_ = held_out_of(size_, context);
    size_ -= num_held_out_;
  }

  int64_t size() const override { return size_; }
  int64_t num_held_out() const override { return num_held_out_; }
  std::string content() const override { return hash_text(hash_content(bytes_)); }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    return token_batch(draws, length_, pinned,
                       [this](const Draw& draw) { return window_at(bytes_, draw.index * length_, length_); });
  }

 private:
  std::vector<uint8_t> bytes_;
  int64_t length_, size_ = 0, num_held_out_ = 0;
};

std::unique_ptr<DataSource> make_text(const Options& options, const DataContext& context) {
  return std::make_unique<Text>(options, context);
}

const Registration<DataEntry> registered{"text", {"the bytes of text files, one token per byte", make_text}};

}  // namespace
}  // namespace shardmark::text_files

// Token files. A sample is a window of the stream of one file; the files come in the order of their sorted
// paths.
#include <fmt/format.h>

#include "data/files/token_files.h"
#include "data/token_batch.h"
#include "specs/specs.h"

namespace shardmark::tokens {
namespace {

class Tokens : public DataSource {
 public:
  Tokens(const Options& options, const DataContext& context)
      : length_(context.sample.input.at(0)),
        vocabulary_(context.sample.num_classes),
        documents_(options.at("documents").get<std::string>()),
        begin_(options.at("begin").get<int64_t>()),
        end_(options.at("end").get<int64_t>()) {
    int64_t tokens = 0;
    for (TokenFile& file : open_token_files(options, vocabulary_, context.folder)) {
      tokens += file.size();
      first_.push_back(size_);
      size_ += num_windows(file.size(), length_);
      files_.push_back(std::move(file));
    }
    if (size_ < 1)
      throw UsageError(
          fmt::format("data 'tokens': the {} file{} of '{}' hold {} tokens, one sample needs {} of one file; "
                      "name more files or shorten the model's sequence",
                      files_.size(), files_.size() == 1 ? "" : "s",
                      specs::data_specs().at("tokens").files(options), tokens, length_ + 1));
    num_held_out_ = held_out_of(size_, context);
    size_ -= num_held_out_;
  }

  int64_t size() const override { return size_; }
  int64_t num_held_out() const override { return num_held_out_; }
  std::string content() const override {
    uint64_t hash = kHashStart;
    for (const TokenFile& file : files_) hash = file.hash(hash);
    return hash_text(hash);
  }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    std::vector<int64_t> window(static_cast<size_t>(length_) + 1);
    const bool joined = documents_ == "joined";
    const at::Tensor positions =
        joined ? at::Tensor() : empty_on_host({std::ssize(draws), length_}, at::kLong, pinned);
    int64_t* position = joined ? nullptr : positions.data_ptr<int64_t>();
    Batch batch = token_batch(draws, length_, pinned, [&](const Draw& draw) {
      // Samples are numbered through all files. A window never reaches into the next file, whose text has
      // nothing to do with this one's end.
      const auto file = std::upper_bound(first_.begin(), first_.end(), draw.index) - first_.begin() - 1;
      const auto number = static_cast<size_t>(file);
      const int64_t first = (draw.index - first_[number]) * length_;
      read_tokens(files_[number], vocabulary_, first, window);
      if (!joined) position = write_positions(files_[number], first, window, position);
      return std::span<const int64_t>(window);
    });
    batch.positions = positions;
    batch.masks_documents = documents_ == "masked";
    return batch;
  }

 private:
  // Writes the positions of a window's tokens within their documents. A document that began before the window
  // is counted from the window's first token. Returns the end of what was written.
  int64_t* write_positions(const TokenFile& file, int64_t first, std::span<const int64_t> window,
                           int64_t* position) const {
    std::vector<int64_t> starts;
    if (begin_ < 0 && end_ < 0) {
      starts = file.index()->document_starts(first, first + length_);
    } else {
      for (size_t i = 0; i + 1 < window.size(); ++i)
        if (window[i] == begin_ || (i > 0 && window[i - 1] == end_))
          starts.push_back(first + static_cast<int64_t>(i));
    }
    auto next = starts.begin();
    for (int64_t token = first, start = first; token < first + length_; ++token) {
      for (; next != starts.end() && *next <= token; ++next) start = *next;
      *position++ = token - start;
    }
    return position;
  }

  std::vector<TokenFile> files_;
  std::vector<int64_t> first_;  // [file], its first sample
  int64_t length_, vocabulary_, size_ = 0, num_held_out_ = 0;
  std::string documents_;  // joined, packed, masked
  int64_t begin_, end_;    // tokens that begin and end a document; -1: none
};

std::unique_ptr<DataSource> make_tokens(const Options& options, const DataContext& context) {
  return std::make_unique<Tokens>(options, context);
}

const Registration<DataEntry> registered{"tokens", {"token files of llm.c and Megatron-LM", make_tokens}};

}  // namespace
}  // namespace shardmark::tokens

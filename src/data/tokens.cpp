// Token files: samples are windows of one file's stream, the files in the order of their sorted paths.
#include <fmt/format.h>

#include <filesystem>

#include "data/token_batch.h"
#include "data/token_file.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

class Tokens : public DataSource {
 public:
  Tokens(const Options& options, const DataContext& context)
      : length_(context.sample.input.at(0)),
        vocabulary_(context.sample.num_classes),
        documents_(options.at("documents").get<std::string>()),
        begin_(options.at("begin").get<int64_t>()),
        end_(options.at("end").get<int64_t>()) {
    const std::string patterns = specs::data_specs().at("tokens").files(options);
    std::set<std::string> paths;
    for (const std::string& path : matching_files("tokens", patterns, context.folder))
      paths.insert(std::filesystem::path(path).replace_extension(".bin").string());
    int64_t tokens = 0;
    for (const std::string& path : paths) {
      const TokenFile& file = files_.emplace_back(path);
      tokens += file.size();
      if (documents_ != "joined" && !file.index() && begin_ < 0 && end_ < 0)
        throw UsageError(
            "'" + path +
            "' does not say where documents begin: give data 'tokens' the token that each begins or "
            "ends with, as begin=50256 (GPT-2) or begin=128000 (Llama 3) in llm.c's files");
      first_.push_back(size_);
      size_ += num_windows(file.size(), length_);
      check_pieces(file, std::ssize(paths));
    }
    if (size_ < 1)
      throw UsageError(
          fmt::format("data 'tokens': the {} file{} of '{}' hold {} tokens, one sample needs {} of one file; "
                      "name more files or shorten the model's sequence",
                      files_.size(), files_.size() == 1 ? "" : "s", patterns, tokens, length_ + 1));
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
      const auto file = std::upper_bound(first_.begin(), first_.end(), draw.index) - first_.begin() - 1;
      const auto number = static_cast<size_t>(file);
      const int64_t first = (draw.index - first_[number]) * length_;
      read(files_[number], first, window);
      if (!joined) position = write_positions(files_[number], first, window, position);
      return std::span<const int64_t>(window);
    });
    batch.positions = positions;
    batch.masks_documents = documents_ == "masked";
    return batch;
  }

 private:
  // Of a window's tokens in their documents. What is left of a document that began before it counts from its
  // first token. Returns what follows the last one.
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

  // At most so many of all files are looked at before the first step, in pieces that are evenly spaced; the
  // others when they are read.
  void check_pieces(const TokenFile& file, int64_t num_files) const {
    constexpr int64_t kPiece = 8192, kMostPieces = 1024;
    std::vector<int64_t> tokens;
    for_pieces(file.size(), kPiece, std::max<int64_t>(2, kMostPieces / num_files),
               [&](int64_t first, int64_t count) {
                 tokens.resize(static_cast<size_t>(count));
                 read(file, first, tokens);
               });
  }

  // A token without a row in the model's tables would end a GPU's context, with no word of where it is.
  void read(const TokenFile& file, int64_t first, std::span<int64_t> tokens) const {
    file.read(first, tokens);
    const auto wrong = std::find_if(tokens.begin(), tokens.end(),
                                    [&](int64_t token) { return token < 0 || token >= vocabulary_; });
    if (wrong != tokens.end())
      throw UsageError(
          fmt::format("'{}' ({}): token {} at position {} is not in the model's vocabulary of {}; set the "
                      "model's option 'vocabulary' above it, or choose files of another tokenizer",
                      file.path(), file.format(), *wrong, first + (wrong - tokens.begin()), vocabulary_));
  }

  std::vector<TokenFile> files_;
  std::vector<int64_t> first_;  // sample of each file
  int64_t length_, vocabulary_, size_ = 0, num_held_out_ = 0;
  std::string documents_;  // joined, packed, masked
  int64_t begin_, end_;    // tokens of theirs; -1: none
};

std::unique_ptr<DataSource> make_tokens(const Options& options, const DataContext& context) {
  return std::make_unique<Tokens>(options, context);
}

const Registration<DataEntry> registered{"tokens", {"token files of llm.c and Megatron-LM", make_tokens}};

}  // namespace
}  // namespace shardmark

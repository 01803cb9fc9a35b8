// Reads and checks token files: headers against the size of the file, the index of Megatron-LM, that tokens
// are in the vocabulary, and that documents can be told apart.
#include "data/files/token_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ranges>
#include <string_view>

#include "base/error.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
// The type of the tokens, by the code in the header.
const std::map<int, TokenType> kTypes = {{1, kTokenType<uint8_t>}, {2, kTokenType<int8_t>},
                                         {3, kTokenType<int16_t>}, {4, kTokenType<int32_t>},
                                         {5, kTokenType<int64_t>}, {8, kTokenType<uint16_t>}};

struct [[gnu::packed]] Header {
  char magic[kMagic.size()];
  uint64_t version;
  uint8_t type;
  int64_t num_sequences, num_documents;
};

// Pieces that are checked when the index is opened. An index of up to a quarter of a million sequences is
// checked completely.
constexpr int64_t kPiece = 4096, kMostPieces = 64;

}  // namespace

MegatronIndex::MegatronIndex(const std::string& path, const SampleFile& tokens)
    : file_(path, "check its permissions"), tokens_(tokens.path()), token_bytes_(tokens.size()) {
  read_header();
  for_pieces(num_sequences_, kPiece, kMostPieces,
             [&](int64_t first, int64_t count) { check_sequences(first, count); });
  for_pieces(num_documents_, kPiece, kMostPieces,
             [&](int64_t first, int64_t count) { check_documents(first, count); });
}

void MegatronIndex::read_header() {
  Header header;
  const auto header_bytes = static_cast<int64_t>(sizeof header);
  if (file_.size() < header_bytes)
    fail(fmt::format("is {} bytes, shorter than its header of {}", file_.size(), header_bytes));
  file_.read(0, &header, sizeof header);
  if (std::string_view(header.magic, kMagic.size()) != kMagic) fail("does not start with MMIDIDX");
  if (const uint64_t version = header.version; version != kVersion)
    fail(fmt::format("is of version {}, only version {} is read", version, kVersion));
  const auto type = kTypes.find(header.type);
  if (type == kTypes.end())
    fail(fmt::format("says type {} of its tokens, which is that of no integers", header.type));
  type_ = type->second;
  num_sequences_ = header.num_sequences;
  num_documents_ = header.num_documents;
  const int64_t bytes = file_.size();
  // Numbers that are larger than the file are not multiplied, so that nothing overflows.
  const bool fits = 0 <= num_sequences_ && num_sequences_ < bytes && 0 <= num_documents_ &&
                    num_documents_ < bytes && documents_begin() + 8 * num_documents_ == bytes &&
                    (num_sequences_ == 0 || num_documents_ > 0);
  if (fits && num_sequences_ == 0) fail("holds no sequences, so that there is nothing to train on");
  if (!fits)
    fail(fmt::format("is {} bytes, which do not hold {} sequences and {} ends of documents", bytes,
                     num_sequences_, num_documents_));
  if (token_bytes_ % type_.bytes != 0)
    fail(fmt::format("says tokens of {} bytes, of which the {} bytes of '{}' are no multiple", type_.bytes,
                     token_bytes_, tokens_));
}

// Every sequence must begin where the one before it ends; the last one must end with the file of tokens,
// and the first one begin with it. So an index of other tokens is found, and sequences fill the file
// without gaps.
void MegatronIndex::check_sequences(int64_t first, int64_t count) const {
  const auto sizes = numbers<int32_t>(sizeof(Header), first, count);
  const bool has_last = first + count == num_sequences_;
  auto begins = numbers<int64_t>(firsts_begin(), first, has_last ? count : count + 1);
  if (has_last) begins.push_back(token_bytes_);
  if (first == 0 && begins[0] != 0) fail(fmt::format("has its first sequence at byte {}", begins[0]));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool inside = sizes[i] >= 0 && begins[i] >= 0 && begins[i] <= token_bytes_;
    if (inside && begins[i] + sizes[i] * type_.bytes == begins[i + 1]) continue;
    fail(fmt::format("has sequence {} of {} tokens from byte {} of '{}', but what follows it, at byte {}",
                     first + static_cast<int64_t>(i), sizes[i], begins[i], tokens_, begins[i + 1]));
  }
}

void MegatronIndex::check_documents(int64_t first, int64_t count) const {
  const bool has_last = first + count == num_documents_;
  const auto firsts = numbers<int64_t>(documents_begin(), first, has_last ? count : count + 1);
  if ((first == 0 && firsts.front() != 0) || (has_last && firsts.back() != num_sequences_) ||
      !std::ranges::is_sorted(firsts))
    fail(fmt::format("has documents whose first sequences do not ascend from 0 to {}", num_sequences_));
}

// Starts ascend, so that the first document from `first` on is found by bisection: a few reads, however
// long the index is. What is read here is checked again, because a large index was checked only in part.
std::vector<int64_t> MegatronIndex::document_starts(int64_t first, int64_t end) const {
  const auto documents = std::views::iota(int64_t{0}, num_documents_);
  const auto from =
      std::ranges::partition_point(documents, [&](int64_t document) { return start_of(document) < first; });
  std::vector<int64_t> starts;
  for (int64_t document : std::ranges::subrange(from, documents.end())) {
    const int64_t start = start_of(document);
    if (start >= end) break;
    if (start < (starts.empty() ? first : starts.back()))
      fail(fmt::format("has document {} before the one that precedes it", document));
    starts.push_back(start);
  }
  return starts;
}

int64_t MegatronIndex::start_of(int64_t document) const {
  const int64_t sequence = numbers<int64_t>(documents_begin(), document, 1)[0];
  if (sequence == num_sequences_) return token_bytes_ / type_.bytes;
  const bool is_one = 0 <= sequence && sequence < num_sequences_;
  const int64_t byte = is_one ? numbers<int64_t>(firsts_begin(), sequence, 1)[0] : -1;
  if (byte < 0 || byte > token_bytes_ || byte % type_.bytes != 0)
    fail(fmt::format("has document {} from sequence {} and byte {} on, which '{}' does not have", document,
                     sequence, byte, tokens_));
  return byte / type_.bytes;
}

template <class Number>
std::vector<Number> MegatronIndex::numbers(int64_t begin, int64_t first, int64_t count) const {
  std::vector<Number> numbers(static_cast<size_t>(count));
  file_.read(begin + first * static_cast<int64_t>(sizeof(Number)), numbers.data(),
             numbers.size() * sizeof(Number));
  return numbers;
}

int64_t MegatronIndex::firsts_begin() const {
  return static_cast<int64_t>(sizeof(Header)) + 4 * num_sequences_;
}
int64_t MegatronIndex::documents_begin() const { return firsts_begin() + 8 * num_sequences_; }

void MegatronIndex::fail(const std::string& what) const {
  throw UsageError(fmt::format(
      "'{}' {}; copy it and '{}' again, or write both with Megatron-LM's tools/preprocess_data.py",
      file_.path(), what, tokens_));
}

namespace {

struct Format {
  int32_t magic, version;
  TokenType type;
  const char* name;
};
constexpr Format kFormats[] = {
    {20240520, 1, kTokenType<uint16_t>, "llm.c's format for GPT-2's vocabulary of 50257"},
    {20240801, 7, kTokenType<uint32_t>, "llm.c's format for Llama 3's vocabulary of 128256"}};

constexpr int64_t kHeaderBytes = 256 * sizeof(int32_t);

std::string index_of(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".idx").string();
}

// A token file of Megatron-LM has no header, so without its index it looks like a damaged file of llm.c.
std::string without_index(const SampleFile& file) {
  return fmt::format(" and has no index '{}' beside it, as one of Megatron-LM's needs: copy that, too",
                     index_of(file.path()));
}

[[noreturn]] void fail(const SampleFile& file, const std::string& what) {
  throw UsageError(fmt::format(
      "'{}' {}; data 'tokens' reads llm.c's .bin files, and Megatron-LM's with their .idx beside them",
      file.path(), what));
}

}  // namespace

TokenFile::TokenFile(const std::string& path)
    : file_(path, "check its permissions, or narrow 'files' of data 'tokens'") {
  const std::string index = index_of(path);
  // An index beside the file decides that it is Megatron-LM's, because such a file has no header of its
  // own.
  if (file_exists(index)) {
    index_.emplace(index, file_);
    type_ = index_->type();
    size_ = file_.size() / type_.bytes;
  } else {
    read_header();
  }
}

void TokenFile::read_header() {
  int32_t header[3];
  if (file_.size() < kHeaderBytes)
    fail(file_, fmt::format("is {} bytes, shorter than llm.c's header of {},", file_.size(), kHeaderBytes) +
                    without_index(file_));
  file_.read(0, header, sizeof header);
  const int32_t magic = header[0], version = header[1], count = header[2];
  const auto* format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                    [&](const Format& known) { return known.magic == magic; });
  if (format == std::end(kFormats))
    fail(file_,
         fmt::format("starts with {} instead of llm.c's magic number {} (GPT-2's tokens) or {} (Llama 3's),",
                     magic, kFormats[0].magic, kFormats[1].magic) +
             without_index(file_));
  if (version != format->version)
    fail(file_, fmt::format("is of version {}, files with magic number {} are read in version {}", version,
                            magic, format->version));
  format_ = format->name;
  type_ = format->type;
  begin_ = kHeaderBytes;
  size_ = count;
  const int64_t expected = begin_ + type_.bytes * std::max(count, 0);
  if (count < 0 || file_.size() != expected)
    fail(file_,
         fmt::format("is {} bytes, but its header says {} tokens: {} bytes", file_.size(), count, expected));
}

void TokenFile::read(int64_t first, std::span<int64_t> tokens) const {
  std::vector<char> bytes(tokens.size() * static_cast<size_t>(type_.bytes));
  file_.read(begin_ + first * type_.bytes, bytes.data(), bytes.size());
  type_.widen(bytes.data(), tokens);
}

uint64_t TokenFile::hash(uint64_t hash) const {
  hash = hash_content(file_, hash);
  return index_ ? hash_content(index_->file(), hash) : hash;
}

namespace {

// A piece is this many tokens; the number of pieces is for all files together.
constexpr int64_t kTokenPiece = 8192, kMostTokenPieces = 1024;

// Whether the token occurs in the file. It is usually found in the first piece; the whole file is read only
// if it does not occur.
bool has_token(const TokenFile& file, int64_t token) {
  std::vector<int64_t> tokens;
  for (int64_t first = 0; first < file.size(); first += kTokenPiece) {
    tokens.resize(static_cast<size_t>(std::min(kTokenPiece, file.size() - first)));
    file.read(first, tokens);
    if (std::find(tokens.begin(), tokens.end(), token) != tokens.end()) return true;
  }
  return false;
}

// Checks that the given tokens occur in the file. If they did not, the whole file would count as one
// document, as with `joined`, and Megatron-LM's index would be ignored in their favour.
void check_documents(const TokenFile& file, const Options& options) {
  if (options.at("documents") == "joined") return;
  const auto begin = options.at("begin").get<int64_t>(), end = options.at("end").get<int64_t>();
  if (begin < 0 && end < 0 && !file.index())
    throw UsageError("'" + file.path() +
                     "' does not say where documents begin: give data 'tokens' the token that each begins or "
                     "ends with, as begin=50256 (GPT-2) or begin=128000 (Llama 3) in llm.c's files");
  for (const auto& [option, token] : {std::pair("begin", begin), {"end", end}})
    if (token >= 0 && !has_token(file, token))
      throw UsageError(fmt::format(
          "'{}': no document {}s with token {}, which is nowhere in the file; give option '{}' of data "
          "'tokens' the token of its tokenizer{}",
          file.path(), option, token, option,
          file.index() ? ", or leave it out: Megatron-LM's index says where documents begin" : ""));
}

}  // namespace

void read_tokens(const TokenFile& file, int64_t vocabulary, int64_t first, std::span<int64_t> tokens) {
  file.read(first, tokens);
  const auto wrong = std::find_if(tokens.begin(), tokens.end(),
                                  [&](int64_t token) { return token < 0 || token >= vocabulary; });
  if (wrong != tokens.end())
    throw UsageError(
        fmt::format("'{}' ({}): token {} at position {} is not in the model's vocabulary of {}; set the "
                    "model's option 'vocabulary' above it, or choose files of another tokenizer",
                    file.path(), file.format(), *wrong, first + (wrong - tokens.begin()), vocabulary));
}

std::vector<TokenFile> open_token_files(const Options& options, int64_t vocabulary,
                                        const std::string& folder) {
  std::set<std::string> paths;
  for (const std::string& path :
       matching_files("tokens", specs::data_specs().at("tokens").files(options), folder))
    paths.insert(std::filesystem::path(path).replace_extension(".bin").string());
  std::vector<TokenFile> files;
  std::vector<int64_t> tokens;
  // A dataset of Megatron-LM may have been named by either of its files, or by both. It counts once, by its
  // .bin.
  for (const std::string& path : paths) {
    const TokenFile& file = files.emplace_back(path);
    // Evenly spaced pieces of every file are checked before the run begins: a file of another tokenizer
    // shows at once. Each window is checked again when it is read.
    for_pieces(file.size(), kTokenPiece, std::max<int64_t>(2, kMostTokenPieces / std::ssize(paths)),
               [&](int64_t first, int64_t count) {
                 tokens.resize(static_cast<size_t>(count));
                 read_tokens(file, vocabulary, first, tokens);
               });
    check_documents(file, options);
  }
  return files;
}

}  // namespace shardmark

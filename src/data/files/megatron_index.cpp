// Reads the index only where it is needed, because the index of a billion documents is larger than a rank's
// memory.
#include "data/files/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>

#include "base/error.h"

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
  if (num_sequences_ == 0 && documents_begin() + 8 * num_documents_ == bytes)
    fail("holds no sequences, so that there is nothing to train on");
  const bool fits = 0 < num_sequences_ && num_sequences_ < bytes && 0 < num_documents_ &&
                    num_documents_ < bytes && documents_begin() + 8 * num_documents_ == bytes;
  if (!fits)
    fail(fmt::format("is {} bytes, which do not hold {} sequences and {} ends of documents", bytes,
                     num_sequences_, num_documents_));
  if (token_bytes_ % type_.bytes != 0)
    fail(fmt::format("says tokens of {} bytes, of which the {} bytes of '{}' are no multiple", type_.bytes,
                     token_bytes_, tokens_));
}

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

}  // namespace shardmark

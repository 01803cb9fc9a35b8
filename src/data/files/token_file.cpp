// Parses the headers of token files, and checks them against the size of the file.
#include "data/files/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/files/content.h"

namespace shardmark {
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

}  // namespace shardmark

// The files of data `tokens`, which are opened and checked before the first step. A file has one of two
// formats.
//
// llm.c: 256 int32 (magic number, version, number of tokens, zeroes), then the tokens: uint16 for GPT-2's
// vocabulary, uint32 for Llama 3's. Source: llm.c, dev/data/data_common.py.
// Megatron-LM: tokens alone in x.bin, with an index x.idx beside them. Source: Megatron-LM,
// megatron/core/datasets/indexed_dataset.py.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/files/sample_file.h"
#include "schema/choice.h"

namespace shardmark {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie in memory");

// An integer type of tokens in a file, and its conversion to 64 bits.
struct TokenType {
  int64_t bytes = 0;
  void (*widen)(const char* from, std::span<int64_t> to) = nullptr;
};

template <class Token>
constexpr TokenType kTokenType = {
    sizeof(Token), [](const char* from, std::span<int64_t> to) {
      for (int64_t& wide : to) {
        Token token;
        std::memcpy(&token, from, sizeof token);
        from += sizeof token;
        wide = static_cast<int64_t>(token);  // NOLINT(bugprone-signed-char-misuse): ids, no text
      }
    }};

// The index x.idx of a Megatron-LM dataset. A header is followed by the number of tokens of each sequence
// (int32), the first byte of each sequence in x.bin (int64), and the first sequence of each document (int64),
// with the number of sequences at the end. It is read only where it is needed, because the index of a billion
// documents is larger than a rank's memory.
class MegatronIndex {
 public:
  // Throws UsageError if the index is damaged or belongs to other tokens. Of a large index only some pieces
  // are checked here, and the rest where it is used.
  MegatronIndex(const std::string& path, const SampleFile& tokens);
  const SampleFile& file() const { return file_; }
  const TokenType& type() const { return type_; }
  // Returns those of the tokens [first, end) with which a document begins, ascending. May be called from
  // several threads at once.
  std::vector<int64_t> document_starts(int64_t first, int64_t end) const;

 private:
  void read_header();
  void check_sequences(int64_t first, int64_t count) const;
  void check_documents(int64_t first, int64_t count) const;
  int64_t start_of(int64_t document) const;  // its first token
  template <class Number>
  std::vector<Number> numbers(int64_t begin, int64_t first, int64_t count) const;
  int64_t firsts_begin() const;     // offset in the file of the sequences' first bytes
  int64_t documents_begin() const;  // offset of the documents' first sequences
  [[noreturn]] void fail(const std::string& what) const;

  SampleFile file_;
  std::string tokens_;  // path of the tokens
  int64_t token_bytes_;
  TokenType type_;
  // The number of documents includes the final entry, which marks the end of the last document.
  int64_t num_sequences_ = 0, num_documents_ = 0;
};

// A file of tokens, in either format.
class TokenFile {
 public:
  // `path` is that of the .bin file. Throws UsageError if it is missing or damaged.
  explicit TokenFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  int64_t size() const { return size_; }  // tokens
  // "llm.c's format for ...": names the tokenizer if the file tells it.
  const char* format() const { return format_; }
  // May be called from several threads at once.
  void read(int64_t first, std::span<int64_t> tokens) const;
  // Continues `hash` with this file and its index.
  uint64_t hash(uint64_t hash) const;
  const std::optional<MegatronIndex>& index() const { return index_; }

 private:
  void read_header();

  SampleFile file_;
  std::optional<MegatronIndex> index_;
  const char* format_ = "Megatron-LM's format";
  TokenType type_;
  int64_t begin_ = 0, size_ = 0;  // first byte, number of tokens
};

// Returns the files in the order of their sorted paths. `options` are those of the resolved choice. Throws
// UsageError if there is no file, if one is damaged, if one has tokens outside the vocabulary, or if the
// documents of one cannot be told apart as the options require. At most 8 million tokens of all files are
// checked, and more only to look for the token that begins or ends a document.
std::vector<TokenFile> open_token_files(const Options& options, int64_t vocabulary,
                                        const std::string& folder);

// Reads tokens from `first` on. Throws UsageError if one of them is not in the vocabulary. On a GPU, a token
// without a row in the model's tables would destroy the context without a hint to its position.
void read_tokens(const TokenFile& file, int64_t vocabulary, int64_t first, std::span<int64_t> tokens);

}  // namespace shardmark

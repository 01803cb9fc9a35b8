// A file of tokens, in one of two formats.
//
// llm.c: 256 int32 (magic number, version, number of tokens, zeroes), then the tokens: uint16 for GPT-2's
// vocabulary, uint32 for Llama 3's. Source: llm.c, dev/data/data_common.py.
// Megatron-LM: tokens alone, with an index file beside them (megatron_index.h).
#pragma once

#include <optional>

#include "data/files/megatron_index.h"

namespace shardmark {

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

}  // namespace shardmark

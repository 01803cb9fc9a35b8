// A file of tokens.
//   llm.c's: 256 int32 (magic number, version, number of tokens, zeros), then the tokens; for GPT-2's
//   vocabulary uint16, for Llama 3's uint32. Source: llm.c, dev/data/data_common.py.
//   Megatron-LM's: tokens alone, with an index beside them (megatron_index.h).
#pragma once

#include <optional>

#include "data/files/megatron_index.h"

namespace shardmark {

class TokenFile {
 public:
  explicit TokenFile(const std::string& path);  // of the .bin. UsageError: absent or damaged
  const std::string& path() const { return file_.path(); }
  int64_t size() const { return size_; }  // tokens
  const char* format() const {
    return format_;
  }  // "llm.c's format for ...": whose tokens they are, if it says
  // Called from several threads at once.
  void read(int64_t first, std::span<int64_t> tokens) const;
  uint64_t hash(uint64_t hash) const;  // goes on with that of the files before
  const std::optional<MegatronIndex>& index() const { return index_; }

 private:
  void read_header();

  SampleFile file_;
  std::optional<MegatronIndex> index_;
  const char* format_ = "Megatron-LM's format";
  TokenType type_;
  int64_t begin_ = 0, size_ = 0;  // of the tokens: byte, number
};

}  // namespace shardmark

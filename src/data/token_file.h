// A file of tokens as llm.c writes them: 256 int32 (magic number, version, number of tokens, zeros), then the
// tokens; for GPT-2's vocabulary uint16, for Llama 3's uint32. Source: llm.c, dev/data/data_common.py.
#pragma once

#include <span>

#include "data/sample_file.h"

namespace shardmark {

// An integer type of tokens, and how they become 64 bits wide.
struct TokenType {
  int64_t bytes;
  void (*widen)(const char* from, std::span<int64_t> to);
};

class TokenFile {
 public:
  explicit TokenFile(const std::string& path);  // UsageError: absent or damaged
  const std::string& path() const { return file_.path(); }
  const SampleFile& file() const { return file_; }
  int64_t size() const { return size_; }  // tokens
  // Called from several threads at once.
  void read(int64_t first, std::span<int64_t> tokens) const;

 private:
  SampleFile file_;
  TokenType type_;
  int64_t begin_, size_ = 0;  // of the tokens: byte, number
};

}  // namespace shardmark

// The index x.idx of a Megatron-LM dataset, whose file x.bin contains the tokens and nothing else. A header
// is followed by the number of tokens of each sequence (int32), the first byte of each sequence in x.bin
// (int64), and the first sequence of each document (int64), with the number of sequences at the end. Source:
// Megatron-LM, megatron/core/datasets/indexed_dataset.py.
#pragma once

#include <vector>

#include "data/files/sample_file.h"
#include "data/files/token_type.h"

namespace shardmark {

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

}  // namespace shardmark

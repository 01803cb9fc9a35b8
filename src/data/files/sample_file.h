// A file from which samples are read when they are needed. It is not mapped into memory: if the file were
// truncated or the disk failed, a mapping would kill the process with a signal (SIGBUS) instead of reporting
// an error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "schema/content_hash.h"
#include "schema/file.h"

namespace shardmark {

class SampleFile {
 public:
  // Throws UsageError "'path': why; advice" if the file cannot be opened.
  SampleFile(const std::string& path, const std::string& advice);
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // bytes, when it was opened
  // May be called from several threads at once. Throws UsageError if the file has been truncated since it was
  // opened, or cannot be read.
  void read(int64_t offset, void* bytes, size_t count) const;

 private:
  std::string path_;
  File file_;
  int64_t size_ = 0;
};

// Calls visit(begin, count) for pieces of [0, size) of at most `length`. If `most` pieces cover all of it,
// all of it is visited; otherwise `most` pieces, evenly spaced from the first to the last.
template <class Visit>
void for_pieces(int64_t size, int64_t length, int64_t most, Visit visit) {
  if (size <= most * length)
    for (int64_t begin = 0; begin < size; begin += length) visit(begin, std::min(length, size - begin));
  else
    for (int64_t i = 0; i < most; ++i) visit((size - length) * i / (most - 1), length);
}

// The files that a source's option `files` names: patterns separated by blanks, looked up in the working
// directory or else in the suite's folder. They are sorted, and each occurs once, whatever the order of the
// patterns, because all ranks must agree. Throws UsageError if a pattern matches no file.
std::set<std::string> matching_files(const std::string& source, const std::string& patterns,
                                     const std::string& folder);

// One number that stands for the content of a source's files. Sources use this to hash their files. Content
// of up to 64 MiB is hashed completely; of larger content 4,096 pieces of 16 KiB, evenly spaced from the
// first byte to the last, so that huge files take no longer. Pass an earlier result as `hash` to continue it.
uint64_t hash_content(std::span<const uint8_t> bytes, uint64_t hash = kHashStart);
uint64_t hash_content(const SampleFile& file, uint64_t hash = kHashStart);

}  // namespace shardmark

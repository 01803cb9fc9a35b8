// A file that samples are read from, where they are needed. It is not mapped into memory: what is cut off, or
// what a disk fails to give, would then end the process by a signal (SIGBUS) instead of an error.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "schema/file.h"

namespace shardmark {

class SampleFile {
 public:
  // UsageError "'path': why; advice" where it cannot be opened.
  SampleFile(const std::string& path, const std::string& advice);
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // bytes, when it was opened
  // Called from several threads at once. UsageError: it has been cut since, or cannot be read.
  void read(int64_t offset, void* bytes, size_t count) const;

 private:
  std::string path_;
  File file_;
  int64_t size_ = 0;
};

// Visits [0, size) in pieces of at most `length`, by (begin, count): all of it up to `most` pieces; of more
// that many, evenly spaced from the first to the last.
template <class Visit>
void for_pieces(int64_t size, int64_t length, int64_t most, Visit visit) {
  if (size <= most * length)
    for (int64_t begin = 0; begin < size; begin += length) visit(begin, std::min(length, size - begin));
  else
    for (int64_t i = 0; i < most; ++i) visit((size - length) * i / (most - 1), length);
}

// Of a source's option `files`: the files that match patterns separated by blanks, from the working directory
// or else from the suite's folder; sorted, each once, whatever the order of the patterns: all ranks must
// agree. UsageError: a pattern that no file matches.
std::set<std::string> matching_files(const std::string& source, const std::string& patterns,
                                     const std::string& folder);

}  // namespace shardmark

// The texts of an HDF5 file lie in "global heaps", which have no checksum: the library (1.10) takes their
// sizes and the references to them as they are, and ends with a signal where they are damaged. Source: HDF5
// File Format Specification 3.0, section III.E, "Disk Format: Level 1E - Global Heap".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/file.h"

namespace shardmark {

class TextHeap {
 public:
  TextHeap(const std::string& path, int64_t user_block_bytes);
  // UsageError: one of the heaps of the file is damaged. Texts of attributes are read by references in
  // headers that have a checksum, so this is all that they ask for.
  void require_heaps() const;
  // UsageError: one of the `count` references that lie at this place of the file leads to no text of its
  // length, or to a heap that is damaged.
  void require_texts(int64_t offset, int64_t count) const;

 private:
  using Sizes = std::map<uint32_t, uint64_t>;  // bytes of a text, by its number

  const Sizes& heap_at(uint64_t address) const;  // at any byte: a heap may follow an odd number of samples

  std::string path_;
  File file_;
  int64_t user_block_bytes_;
  mutable std::map<uint64_t, Sizes> heaps_;  // by address: those that were read
};

}  // namespace shardmark

// Checks the texts of an HDF5 file before HDF5 reads them. Texts are stored in "global heaps", which have no
// checksum. HDF5 1.10 trusts the sizes in them and the references to them, and crashes if they are damaged.
// Source: HDF5 File Format Specification 3.0, section III.E, "Disk Format: Level 1E - Global Heap".
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
  // Throws UsageError if one of the file's heaps is damaged. This is enough for attributes: the references to
  // their texts are in headers that have a checksum.
  void require_heaps() const;
  // Throws UsageError if one of the `count` references at this offset of the file does not lead to a text of
  // its length, or leads to a damaged heap.
  void require_texts(int64_t offset, int64_t count) const;

 private:
  using Sizes = std::map<uint32_t, uint64_t>;  // size in bytes of each object, by its number

  // A heap may begin at any byte, because it may follow an odd number of bytes of samples.
  const Sizes& heap_at(uint64_t address) const;

  std::string path_;
  File file_;
  int64_t user_block_bytes_;
  mutable std::map<uint64_t, Sizes> heaps_;  // by address: the heaps read so far
};

}  // namespace shardmark

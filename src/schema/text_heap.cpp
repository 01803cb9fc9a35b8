// Finds heaps by their signature or by the references of texts, and walks through the objects in them.
#include "schema/text_heap.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr char kSignature[8] = {'G', 'C', 'O', 'L', 1, 0, 0, 0};  // "GCOL", the version, three reserved bytes
constexpr int64_t kHeader = 16, kObjectHeader = 16, kReference = 16, kAlignment = 8;

template <class T>
T number_at(const char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);  // the file is little-endian, and so is this machine
  return number;
}

[[noreturn]] void refuse() { throw UsageError("its texts are damaged"); }

}  // namespace

TextHeap::TextHeap(const std::string& path, int64_t user_block_bytes)
    : path_(path), file_(open_if_exists(path, O_RDONLY)), user_block_bytes_(user_block_bytes) {}

// A heap is a header and a list of objects. Header: signature (4 bytes), version (1), reserved (3), size of
// the heap (8). Object: number (2), references (2), reserved (4), size (8), then the data, padded to a
// multiple of 8. Every size is checked against the end of the heap before it is used.
const TextHeap::Sizes& TextHeap::heap_at(uint64_t address) const {
  const auto [heap, is_new] = heaps_.try_emplace(address);
  Sizes& sizes = heap->second;
  if (!is_new) return sizes;
  const int64_t room = ::lseek(file_.get(), 0, SEEK_END) - user_block_bytes_;
  char header[kHeader];
  if (address > static_cast<uint64_t>(room)) refuse();
  const int64_t begin = user_block_bytes_ + static_cast<int64_t>(address);
  if (!read_at(file_, path_, begin, header, sizeof header)) refuse();
  if (std::memcmp(header, kSignature, sizeof kSignature) != 0) refuse();
  const auto bytes = number_at<uint64_t>(header + 8);
  if (bytes < kHeader || bytes > static_cast<uint64_t>(room) - address) refuse();
  std::string heap_bytes(bytes, '\0');
  if (!read_at(file_, path_, begin, heap_bytes.data(), heap_bytes.size())) refuse();
  for (uint64_t at = kHeader; at + kObjectHeader <= bytes;) {
    const auto number = number_at<uint16_t>(heap_bytes.data() + at);
    const auto size = number_at<uint64_t>(heap_bytes.data() + at + 8);
    // Object 0 is the free space up to the end of the heap; its size includes its header.
    if (number == 0) {
      if (size != bytes - at) refuse();
      break;
    }
    const uint64_t rest = bytes - at - kObjectHeader;
    if (size > rest || !sizes.emplace(number, size).second) refuse();
    at += kObjectHeader + std::min(rest, (size + kAlignment - 1) / kAlignment * kAlignment);
  }
  return sizes;
}

void TextHeap::require_heaps() const {
  constexpr int64_t kPiece = 1 << 20;
  const int64_t end = ::lseek(file_.get(), 0, SEEK_END);
  for (int64_t begin = user_block_bytes_; begin < end; begin += kPiece) {
    std::string piece(static_cast<size_t>(std::min<int64_t>(kPiece + sizeof kSignature - 1, end - begin)),
                      '\0');
    if (!read_at(file_, path_, begin, piece.data(), piece.size())) refuse();
    const std::string_view signature(kSignature, sizeof kSignature);
    for (size_t at = 0; (at = piece.find(signature, at)) != std::string::npos; ++at)
      heap_at(static_cast<uint64_t>(begin - user_block_bytes_) + at);
  }
}

// A reference is the length of the text (4 bytes), the address of its heap (8) and the number of its object
// (4).
void TextHeap::require_texts(int64_t offset, int64_t count) const {
  std::string references(static_cast<size_t>(count * kReference), '\0');
  if (!read_at(file_, path_, offset, references.data(), references.size())) refuse();
  for (int64_t i = 0; i < count; ++i) {
    const char* reference = references.data() + i * kReference;
    const auto length = number_at<uint32_t>(reference);
    const auto address = number_at<uint64_t>(reference + 4);
    const auto number = number_at<uint32_t>(reference + 12);
    if (length == 0 && address == 0) continue;  // an empty text
    const Sizes& sizes = heap_at(address);
    const auto text = sizes.find(number);
    if (text == sizes.end() || text->second != length) refuse();
  }
}

}  // namespace shardmark

// Finds the heaps by their signature, and walks through the objects of each.
#include "schema/text_heap.h"

#include <fcntl.h>

#include <cstring>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr char kSignature[8] = {'G', 'C', 'O', 'L', 1, 0, 0, 0};  // with version and zeros
constexpr int64_t kHeader = 16, kObjectHeader = 16, kReference = 16, kAlignment = 8;
constexpr int64_t kPiece = int64_t{1} << 20;

template <class T>
T number_at(const char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);  // little-endian, as the machine
  return number;
}

[[noreturn]] void refuse() { throw UsageError("its texts are damaged"); }

}  // namespace

TextHeap::TextHeap(const std::string& path, int64_t user_block_bytes)
    : path_(path), file_(open_if_exists(path, O_RDONLY)), user_block_bytes_(user_block_bytes) {
  const int64_t size = ::lseek(file_.get(), 0, SEEK_END);
  std::string piece;
  for (int64_t begin = user_block_bytes; begin + kHeader <= size; begin += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, size - begin)));
    if (!read_at(file_, path_, begin, piece.data(), piece.size())) refuse();
    for (size_t at = 0; at + sizeof kSignature <= piece.size(); at += kAlignment)
      if (std::memcmp(piece.data() + at, kSignature, sizeof kSignature) == 0)
        add(begin + static_cast<int64_t>(at), size);
  }
}

void TextHeap::add(int64_t begin, int64_t file_bytes) {
  char header[kHeader];
  if (!read_at(file_, path_, begin, header, sizeof header)) refuse();
  const auto bytes = number_at<uint64_t>(header + 8);
  if (bytes < kHeader || bytes > static_cast<uint64_t>(file_bytes - begin)) refuse();
  std::string heap(bytes, '\0');
  if (!read_at(file_, path_, begin, heap.data(), heap.size())) refuse();
  auto& sizes = sizes_[static_cast<uint64_t>(begin - user_block_bytes_)];
  for (uint64_t at = kHeader; at + kObjectHeader <= bytes;) {
    const auto number = number_at<uint16_t>(heap.data() + at);
    const auto size = number_at<uint64_t>(heap.data() + at + 8);
    if (number == 0) {  // what is free, to the end; with its own header
      if (size != bytes - at) refuse();
      return;
    }
    const uint64_t room = bytes - at - kObjectHeader;
    if (size > room || !sizes.emplace(number, size).second) refuse();
    at += kObjectHeader + std::min(room, (size + kAlignment - 1) / kAlignment * kAlignment);
  }
}

void TextHeap::require_texts(int64_t offset, int64_t count) const {
  std::string references(static_cast<size_t>(count * kReference), '\0');
  if (!read_at(file_, path_, offset, references.data(), references.size())) refuse();
  for (int64_t i = 0; i < count; ++i) {
    const char* reference = references.data() + i * kReference;
    const auto length = number_at<uint32_t>(reference);
    const auto address = number_at<uint64_t>(reference + 4);
    const auto number = number_at<uint32_t>(reference + 12);
    if (length == 0 && address == 0) continue;  // an empty text
    const auto heap = sizes_.find(address);
    if (heap == sizes_.end()) refuse();
    const auto text = heap->second.find(number);
    if (text == heap->second.end() || text->second != length) refuse();
  }
}

}  // namespace shardmark

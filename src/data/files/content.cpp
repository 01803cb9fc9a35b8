// Hashes pieces of a file that are evenly spaced.
#include "data/files/content.h"

#include "schema/content_hash.h"

namespace shardmark {
namespace {

// read(begin, count) returns that range of the whole content.
template <class Read>
uint64_t hash_pieces(int64_t size, uint64_t hash, Read read) {
  for_pieces(size, 16384, 4096, [&](int64_t begin, int64_t count) {
    hash = hash_bytes(read(static_cast<size_t>(begin), static_cast<size_t>(count)), hash);
  });
  return hash;
}

}  // namespace

uint64_t hash_content(std::span<const uint8_t> bytes, uint64_t hash) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return hash_pieces(std::ssize(all), hash,
                     [&](size_t begin, size_t count) { return all.substr(begin, count); });
}

uint64_t hash_content(const SampleFile& file, uint64_t hash) {
  std::string piece;
  return hash_pieces(file.size(), hash, [&](size_t begin, size_t count) {
    piece.resize(count);
    file.read(static_cast<int64_t>(begin), piece.data(), count);
    return std::string_view(piece);
  });
}

}  // namespace shardmark

// Computes the seal of a file in one pass, to write it or to check it.
#include "schema/seal.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "base/error.h"
#include "schema/content_hash.h"
#include "schema/file.h"

namespace shardmark {
namespace {

constexpr std::string_view kMark = "shardmark study\n";
constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";

std::string seal_text(int64_t length, uint64_t checksum) {
  std::string text = fmt::format("{}length {}\nchecksum {}\n", kMark, length, hash_text(checksum));
  text.resize(kSealBytes, '\0');
  return text;
}

// Returns the seal for everything after the first kSealBytes of `file`.
std::string seal_of(std::istream& file) {
  std::vector<char> piece(size_t{1} << 20);
  int64_t length = kSealBytes;
  uint64_t checksum = kHashStart;
  file.clear();
  file.seekg(kSealBytes);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    length += file.gcount();
    checksum = hash_bytes({piece.data(), static_cast<size_t>(file.gcount())}, checksum);
  }
  return seal_text(length, checksum);
}

}  // namespace

void seal_file(const std::string& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const std::string seal = seal_of(file);
  file.clear();
  file.seekp(0);
  file << seal << std::flush;
  if (!file) throw SystemError("its seal cannot be written");
}

int64_t require_sealed(const std::string& path) {
  auto opened = open_input(path, kMostStudyBytes);
  if (!opened) throw UsageError(path + ": no such study");
  std::ifstream& file = *opened;
  std::string seal(kSealBytes, '\0');
  file.read(seal.data(), kSealBytes);
  if (seal.starts_with(kHdf5)) return 0;
  if (file.gcount() == 0 && file.eof()) throw UsageError(path + " is empty: not a study");
  if (!seal.starts_with(kMark)) throw UsageError(path + " is damaged, or not a study");
  if (seal != seal_of(file))
    throw UsageError(path +
                     " is damaged, cut off, or was changed by another program: it is not what was published");
  return kSealBytes;
}

}  // namespace shardmark

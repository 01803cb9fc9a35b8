// Opens and reads files with plain system calls; failures are reported in the system's own words. Hashes
// pieces of a file that are evenly spaced.
#include "data/files/sample_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/glob.h"
#include "schema/content_hash.h"

namespace shardmark {

SampleFile::SampleFile(const std::string& path, const std::string& advice)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  const auto fail = [&](const char* why) { throw UsageError("'" + path + "': " + why + "; " + advice); };
  struct stat info = {};
  if (!file_ || ::fstat(file_.get(), &info) != 0) fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("not a regular file");
  size_ = info.st_size;
}

void SampleFile::read(int64_t offset, void* bytes, size_t count) const {
  if (read_at(file_, path_, offset, bytes, count)) return;
  throw UsageError("'" + path_ + "' had " + std::to_string(size_) +
                   " bytes when it was opened, and has been cut since: put it back, and leave it alone while "
                   "it is read");
}

std::set<std::string> matching_files(const std::string& source, const std::string& patterns,
                                     const std::string& folder) {
  std::set<std::string> files;
  std::istringstream words(patterns);
  for (std::string pattern; words >> pattern;) {
    const auto found = glob_near(folder, pattern);
    if (found.empty())
      throw UsageError(fmt::format(
          "data '{}': no file matches '{}' from {}{}; give 'files' patterns relative to it, such as "
          "'README.md "
          "data/**/*.bin'",
          source, pattern, std::filesystem::current_path().string(), folder.empty() ? "" : " or " + folder));
    files.insert(found.begin(), found.end());
  }
  return files;
}

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

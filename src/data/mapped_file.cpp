// open, fstat, mmap; each failure in the system's own words.
#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/handle.h"

namespace shardmark {
namespace {

struct Close {
  void operator()(int descriptor) const { ::close(descriptor); }
};

}  // namespace

MappedFile::MappedFile(const std::string& path, const std::string& advice) : path_(path) {
  const auto fail = [&](const char* why) { throw UsageError("'" + path + "': " + why + "; " + advice); };
  const Handle<int, Close> file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), -1);
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info) != 0) fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("not a regular file");
  if (info.st_size == 0) return;  // nothing to map; an empty span says so
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) fail(std::strerror(errno));
  bytes_ = {static_cast<const uint8_t*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace shardmark

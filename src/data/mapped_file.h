// A file mapped for reading: the ranks of a node share one copy of its bytes, and only what is used is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shardmark {

class MappedFile {
 public:
  // UsageError "'path': why; advice" where it cannot be read.
  MappedFile(const std::string& path, const std::string& advice);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  const std::string& path() const { return path_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const uint8_t> bytes_;
};

}  // namespace shardmark

// The seal of a published study: the first 512 bytes of the file, which HDF5 leaves to its writer ("user
// block"). HDF5 has checksums over its structures alone, and its library may crash on damaged texts or return
// damaged numbers; a seal that fits says that the file is, to the last byte, what was published.
//   shardmark study\nlength 248608\nchecksum 0123456789abcdef\n     then zeros; the checksum is of all behind
//   them
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

inline constexpr int64_t kSealBytes = 512;  // HDF5's smallest user block

// Writes the seal of a file that was created with room for it.
void seal_file(const std::string& path);

// UsageError: the file is shorter or longer than it was, was changed, or is neither a study nor HDF5. A file
// that begins as HDF5 does is older than seals and passes. Returns the bytes in front of what HDF5 wrote.
int64_t require_sealed(const std::string& path);

}  // namespace shardmark

// The seal of a published study: length and checksum of the whole file, in its first 512 bytes, which HDF5
// leaves to the writer ("user block"). HDF5 has checksums for its own structures only: with damaged text the
// library may crash, and damaged numbers are returned as if they were right. If the seal matches, the file is
// to the last byte what was published. The seal is this text, padded with zeros; the checksum covers all
// bytes after it:
//   shardmark study\nlength 248608\nchecksum 0123456789abcdef\n
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

inline constexpr int64_t kSealBytes = 512;  // HDF5's smallest user block

// Writes the seal into a file that was created with a user block of kSealBytes.
void seal_file(const std::string& path);

// Checks the seal, and returns the size of the user block. Throws UsageError if the file is missing, was
// shortened, extended or changed, or is neither a study nor HDF5. A file without a user block was written
// before seals were introduced: it is accepted, and the result is 0.
int64_t require_sealed(const std::string& path);

}  // namespace shardmark

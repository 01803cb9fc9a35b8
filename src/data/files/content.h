// What the bytes of a source's files are, as one number.
#pragma once

#include <cstdint>
#include <span>

#include "data/files/sample_file.h"
#include "schema/content_hash.h"

namespace shardmark {

// For the sources: a hash of all bytes up to 64 MiB; of more, of 4,096 pieces of 16 KiB from the first byte
// to the last, so that huge files cost no more. Pass an earlier result to go on with it.
uint64_t hash_content(std::span<const uint8_t> bytes, uint64_t hash = kHashStart);
uint64_t hash_content(const SampleFile& file, uint64_t hash = kHashStart);

}  // namespace shardmark

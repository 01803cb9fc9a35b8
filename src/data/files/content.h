// One number that stands for the content of a source's files.
#pragma once

#include <cstdint>
#include <span>

#include "data/files/sample_file.h"
#include "schema/content_hash.h"

namespace shardmark {

// Sources use this to hash their files. Content of up to 64 MiB is hashed completely; of larger content 4,096
// pieces of 16 KiB, evenly spaced from the first byte to the last, so that huge files take no longer. Pass an
// earlier result as `hash` to continue it.
uint64_t hash_content(std::span<const uint8_t> bytes, uint64_t hash = kHashStart);
uint64_t hash_content(const SampleFile& file, uint64_t hash = kHashStart);

}  // namespace shardmark

// The schema version that a file carries, and whether this program reads it.
#pragma once

#include <charconv>
#include <string>

#include "base/error.h"
#include "schema/fields.h"

namespace shardmark {

inline std::string schema_version() {
  return std::to_string(kSchemaMajor) + "." + std::to_string(kSchemaMinor);
}

// Throws UsageError for a newer major version; an older one, and any minor one, can be read.
inline void require_readable(const std::string& version, const std::string& path) {
  int major = 0;
  const auto parsed = std::from_chars(version.data(), version.data() + version.size(), major);
  if (parsed.ec != std::errc() || *parsed.ptr != '.')
    throw UsageError(path + ": '" + version +
                     "' is not a schema version; the file is damaged or not a study");
  if (major > kSchemaMajor)
    throw UsageError(path + " has schema version " + version + ", this program reads up to " +
                     schema_version() + "; use a newer shardmark");
}

}  // namespace shardmark

// The schema version that a file carries, and whether this program can read it.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "schema/fields.h"

namespace shardmark {

inline std::string schema_version() {
  return std::to_string(kSchemaMajor) + "." + std::to_string(kSchemaMinor);
}

// Returns the minor version. Throws UsageError for a newer major version, for one from before the first
// release, or for text that schema_version() cannot have written. Every later minor version can be read.
inline int require_readable(const std::string& version, const std::string& path) {
  int major = -1, minor = -1;
  const char *const begin = version.data(), *const end = begin + version.size();
  const char* const dot = std::find(begin, end, '.');
  std::from_chars(begin, dot, major);
  if (dot != end) std::from_chars(dot + 1, end, minor);
  if (major < 0 || minor < 0 || version != std::to_string(major) + "." + std::to_string(minor))
    throw UsageError(path + ": " + quoted_line(version) +
                     " is not a schema version; the file is damaged or not a study");
  if (major > kSchemaMajor)
    throw UsageError(path + " has schema version " + version + ", this program reads up to " +
                     schema_version() + "; use a newer shardmark");
  if (major < kSchemaMajor || minor < kFirstReleasedMinor)
    throw UsageError(path + " has schema version " + version + ", which is older than the first release (" +
                     std::to_string(kSchemaMajor) + "." + std::to_string(kFirstReleasedMinor) +
                     "); measure it again");
  return minor;
}

}  // namespace shardmark

// The schema version that a file carries, and whether this program reads it.
#pragma once

#include <charconv>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "schema/fields.h"

namespace shardmark {

inline std::string schema_version() {
  return std::to_string(kSchemaMajor) + "." + std::to_string(kSchemaMinor);
}

// {1, 5} of "1.5"; UsageError where it is no such text.
inline std::pair<int, int> parsed_version(const std::string& version) {
  std::pair<int, int> found;
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, found.first);
  const bool has_minor = major.ec == std::errc() && major.ptr != end && *major.ptr == '.';
  const auto minor = has_minor ? std::from_chars(major.ptr + 1, end, found.second) : major;
  if (!has_minor || minor.ec != std::errc() || minor.ptr != end || found.first < 0 || found.second < 0)
    throw UsageError(quoted_line(version) + " is not a schema version; the file is damaged or not a study");
  return found;
}

inline int minor_of(const std::string& version) { return parsed_version(version).second; }

// Throws UsageError for a newer major version; an older one, and any minor one, can be read.
inline void require_readable(const std::string& version, const std::string& path) {
  if (parsed_version(version).first > kSchemaMajor)
    throw UsageError(path + " has schema version " + version + ", this program reads up to " +
                     schema_version() + "; use a newer shardmark");
}

}  // namespace shardmark

// The text of a journal's lines; see Note [Journal] in journal.h.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

// Where a record's samples lie in the sidecar.
struct SamplesPlace {
  int64_t offset = 0;          // bytes
  std::string checksum;        // over the values of all series
  std::vector<Series> series;  // names and shapes, without values

  int64_t end() const;  // bytes
};

// What a line may hold: the environment of a launch, or one of these.
struct Began {
  Record record;  // no more than what is known before
};
struct Extended {
  std::string id;        // of the point that has begun
  SamplesPlace samples;  // columns that its series have gained
};
struct Recorded {
  Record record;
  SamplesPlace samples;
};
struct Due {
  std::vector<std::string> ids;  // of points that are to be measured again
};
struct Foreign {};  // of a later minor version: passed over
using JournalLine = std::variant<Environment, Began, Extended, Recorded, Due, Foreign>;

std::string to_line(const Environment& environment);
std::string to_line(const Record& record, const SamplesPlace& samples);
std::string to_began_line(const Record& record);
std::string to_line(const Extended& progress);
std::string to_line(const Due& due);
// Nothing when the line is not what was written. `where` names file and line in errors: UsageError for a
// newer schema.
std::optional<JournalLine> read_line(const std::string& line, const std::string& where);

// Bytes of a series' values as they lie in the sidecar.
inline std::string_view bytes_of(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

}  // namespace shardmark

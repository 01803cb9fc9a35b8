// The text of a journal's lines; journal.h explains the format, Note [Journal].
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

// Where a record's samples are stored in the file of samples.
struct SamplesPlace {
  int64_t offset = 0;          // bytes
  std::string checksum;        // over the values of all series
  std::vector<Series> series;  // names and shapes, without values

  int64_t end() const;  // bytes
};

// A line holds the environment of a launch or one of these.
struct Began {
  Record record;  // only what is known before the measurement
};
struct Extended {
  std::string id;        // id of the point that has begun
  SamplesPlace samples;  // new columns of its series
};
struct Recorded {
  Record record;
  SamplesPlace samples;
};
struct Due {
  std::vector<std::string> ids;  // ids of points that are to be measured again
};
struct Foreign {};  // a line of a later minor version, which is skipped
using JournalLine = std::variant<Environment, Began, Extended, Recorded, Due, Foreign>;

std::string to_line(const Environment& environment);
std::string to_line(const Record& record, const SamplesPlace& samples);
std::string to_began_line(const Record& record);
std::string to_line(const Extended& progress);
std::string to_line(const Due& due);
// Parses a line. Returns nothing if the checksum does not match. `where` names file and line in errors.
// Throws UsageError for a newer schema, or if the content is not that of a journal's line.
std::optional<JournalLine> read_line(const std::string& line, const std::string& where);

// A view of a series' values as bytes, as they are stored in the file of samples.
inline std::string_view bytes_of(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

}  // namespace shardmark

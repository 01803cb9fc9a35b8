// Writes and parses the lines of a journal. A line is one JSON object whose first key is a checksum of the
// rest of the line.
#include "schema/journal_line.h"

#include <algorithm>

#include "schema/content_hash.h"
#include "schema/json.h"
#include "schema/possible.h"
#include "schema/version.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead = "{\"checksum\":\"";
constexpr size_t kHashDigits = 16;
constexpr size_t kBody = kHead.size() + kHashDigits + 1;  // starts after the closing quotation mark

std::string seal(const Json& object) {
  std::string body = dump_line(object);
  body.front() = ',';  // was '{'
  return std::string(kHead) + hash_text(hash_bytes(body)) + '"' + body + '\n';
}

bool is_whole(const std::string& line) {
  return line.size() > kBody && line.starts_with(kHead) &&
         line.compare(kHead.size(), kHashDigits,
                      hash_text(hash_bytes(std::string_view(line).substr(kBody)))) == 0;
}

Json to_json(const SamplesPlace& place) {
  Json series = Json::array();
  for (const Series& s : place.series)
    series.push_back({{"name", s.name}, {"rows", s.rows}, {"columns", s.columns}});
  return {{"offset", place.offset}, {"checksum", place.checksum}, {"series", series}};
}

// Whether the shapes and offsets make sense at all: none is negative, and sizes in bytes fit into 64 bits.
// This is checked before anybody allocates memory for them.
bool is_possible(const SamplesPlace& place) {
  int64_t end = place.offset;
  return end >= 0 && std::all_of(place.series.begin(), place.series.end(), [&](const Series& s) {
           int64_t bytes = 0;
           return s.rows > 0 && s.columns >= 0 && !__builtin_mul_overflow(s.rows, s.columns, &bytes) &&
                  !__builtin_mul_overflow(bytes, sizeof(double), &bytes) &&
                  !__builtin_add_overflow(end, bytes, &end);
         });
}

Record possible_record(const Json& json) {
  Record record = record_from_json(json);
  require_possible(record);
  return record;
}

SamplesPlace place_from_json(const Json& json) {
  SamplesPlace place{whole_number(json.at("offset")), json.at("checksum"), {}};
  for (const Json& s : json.at("series"))
    place.series.push_back({s.at("name"), whole_number(s.at("rows")), whole_number(s.at("columns")), {}});
  if (!is_possible(place)) throw UsageError("its samples have an impossible shape or place");
  return place;
}

}  // namespace

int64_t SamplesPlace::end() const {
  int64_t end = offset;
  for (const Series& s : series) end += s.rows * s.columns * static_cast<int64_t>(sizeof(double));
  return end;
}

std::string to_line(const Environment& environment) {
  return seal({{"schema", schema_version()}, {"environment", to_json(environment)}});
}

std::string to_line(const Record& record, const SamplesPlace& samples) {
  return seal({{"record", to_json(record)}, {"samples", to_json(samples)}});
}

std::string to_began_line(const Record& record) { return seal({{"began", to_json(record)}}); }

std::string to_line(const Extended& progress) {
  return seal({{"progress", progress.id}, {"samples", to_json(progress.samples)}});
}

std::string to_line(const Due& due) { return seal({{"due", due.ids}}); }

std::optional<JournalLine> read_line(const std::string& line, const std::string& where) {
  if (!is_whole(line)) return {};
  try {
    const Json json = Json::parse(line);
    if (json.contains("environment")) {
      require_readable(json.at("schema"), where);
      return environment_from_json(json.at("environment"));
    }
    if (json.contains("began")) return Began{possible_record(json.at("began"))};
    if (json.contains("progress")) return Extended{json.at("progress"), place_from_json(json.at("samples"))};
    if (json.contains("due")) return Due{json.at("due")};
    if (!json.contains("record")) return Foreign{};
    return Recorded{possible_record(json.at("record")), place_from_json(json.at("samples"))};
  } catch (const Json::exception& error) {
    throw UsageError(where + " is not a line of a journal: " + error.what());
  } catch (const UsageError& error) {  // an error about a newer schema already begins with `where`
    const std::string what = error.what();
    throw UsageError(what.starts_with(where) ? what : where + " is not a line of a journal: " + what);
  }
}

}  // namespace shardmark

// Writes the journal of a running study, and reads it from start to end in one pass. journal.h explains the
// format: Note [Journal]. A line is one JSON object whose first key is a checksum of the rest of the line.
#include "schema/journal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "schema/content_hash.h"
#include "schema/fields.h"
#include "schema/json.h"
#include "schema/older.h"
#include "schema/possible.h"
#include "schema/record.h"
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
      const int minor = require_readable(json.at("schema"), where);
      return Opened{environment_from_json(json.at("environment")), minor};
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

namespace {

using Parts = std::map<std::string, std::vector<const Series*>>;  // by name

bool fits(const std::vector<Series>& piece, const Parts& before) {
  std::set<std::string> seen;
  return std::all_of(piece.begin(), piece.end(), [&](const Series& series) {
    const bool is_known = std::any_of(kSeries.begin(), kSeries.end(),
                                      [&](const SeriesInfo& info) { return info.name == series.name; });
    const auto parts = before.find(series.name);
    return is_known && seen.insert(series.name).second &&
           (parts == before.end() || parts->second.front()->rows == series.rows);
  });
}

Series whole(const std::string& name, const std::vector<const Series*>& parts) {
  Series series{name, parts.front()->rows, 0, {}};
  for (const Series* part : parts) series.columns += part->columns;
  series.values.reserve(static_cast<size_t>(series.rows * series.columns));
  for (int64_t row = 0; row < series.rows; ++row)
    for (const Series* part : parts) {
      const auto begin = part->values.begin() + row * part->columns;
      series.values.insert(series.values.end(), begin, begin + part->columns);
    }
  return series;
}

// Joins series that were recorded in pieces, such as the intervals of a sustained run. Rows are ranks, so
// every row of the result consists of a part of each piece. Returns each series with the columns of all
// pieces, one piece after the other. A piece is left out if it names an unknown series (fields.h), names one
// twice, or has another number of rows than the pieces before it.
std::vector<Series> join_columns(const std::vector<std::vector<Series>>& pieces) {
  Parts parts;
  for (const auto& piece : pieces) {
    if (!fits(piece, parts)) continue;
    for (const Series& series : piece) parts[series.name].push_back(&series);
  }
  std::vector<Series> series;
  series.reserve(parts.size());
  for (const auto& [name, of_pieces] : parts) series.push_back(whole(name, of_pieces));
  return series;
}

// Reads the samples at a place. Returns nothing if the file is too short or the checksum does not match.
std::optional<std::vector<Series>> read_samples(const File& file, const std::string& path,
                                                SamplesPlace place) {
  uint64_t hash = kHashStart;
  int64_t offset = place.offset;
  // Reads the last byte first: memory for all values is taken only if the file is long enough to have them.
  char last = 0;
  if (place.end() > offset && !read_at(file, path, place.end() - 1, &last, 1)) return {};
  for (Series& s : place.series) {
    s.values.resize(static_cast<size_t>(s.rows * s.columns));
    const size_t count = s.values.size() * sizeof(double);
    if (!read_at(file, path, offset, s.values.data(), count)) return {};
    hash = hash_bytes(bytes_of(s.values), hash);
    offset += static_cast<int64_t>(count);
  }
  if (hash_text(hash) != place.checksum) return {};
  return std::move(place.series);
}

class Scanner {
 public:
  Scanner(const std::string& study, Load load, const RecordSink& sink)
      : study_(study),
        path_(journal_path(study)),
        samples_path_(samples_path(study)),
        load_(load),
        sink_(sink) {}

  std::optional<JournalScan> run() {
    auto opened = open_input(path_, kMostJournalBytes);
    samples_ = open_if_exists(samples_path_, O_RDONLY);
    if (!opened || !samples_) return {};
    std::ifstream& lines = *opened;
    std::string line;
    int64_t end = 0, num_broken = 0;
    for (int64_t number = 1; std::getline(lines, line); ++number) {
      end += static_cast<int64_t>(line.size()) + 1;
      // A last line without a newline was only partly written.
      const bool whole = !lines.eof() && take(line, number);
      if (number == 1 && !whole)
        throw UsageError(path_ + " is not a study's journal, or its first line is damaged");
      if (!whole) {
        ++num_broken;
        continue;
      }
      // A crash can damage only the end of the file. Broken lines before a complete one were damaged later.
      scan_.num_damaged += std::exchange(num_broken, 0);
      scan_.whole_bytes = end;
    }
    // The journal is empty, so it only reserves the name.
    if (end == 0 && !has_journal(study_)) return {};
    if (end == 0) throw UsageError(path_ + " is empty");
    scan_.torn = num_broken > 0;
    if (scan_.began) scan_.began->samples = joined();
    return std::move(scan_);
  }

 private:
  bool take(const std::string& line, int64_t number) {
    auto content = read_line(line, path_ + ":" + std::to_string(number));
    if (!content || (number == 1 && !std::holds_alternative<Opened>(*content))) return false;
    return std::visit([this](auto& held) { return keep(std::move(held)); }, *content);
  }

  // Each keep() returns false if the line turns out not to be complete: its samples are not there.
  bool keep(Opened&& opened) {
    older_ = Older(opened.minor, opened.environment);
    scan_.environment = std::move(opened.environment);
    older_.renew(scan_.environment);
    begin_nothing();  // the former job ended without a record of its point
    return true;
  }
  bool keep(Began&& began) {
    begin_nothing();
    scan_.began = std::move(began.record);
    older_.renew(*scan_.began);
    return true;
  }
  bool keep(Extended&& progress) {
    scan_.samples_bytes = std::max(scan_.samples_bytes, progress.samples.end());
    older_.renew(progress.id);
    if (has_begun(progress.id)) pieces_.push_back(std::move(progress.samples));
    return true;
  }
  bool keep(Foreign&&) { return true; }
  bool keep(Due&& due) {
    for (std::string& id : due.ids) older_.renew(id);
    scan_.due.insert(due.ids.begin(), due.ids.end());
    return true;
  }
  // `due` holds points that are to be measured again; a record that follows is that measurement.
  bool keep(Recorded&& recorded) {
    auto& [record, place] = recorded;
    older_.renew(record);
    const int64_t end = place.end();
    // The record of a point that ended its job has no samples of its own. They are in the progress lines
    // before it.
    if (record.ended_job && place.series.empty() && has_begun(record.id)) {
      record.samples = joined();
    } else if (load_ == Load::everything) {
      auto samples = read_samples(samples_, samples_path_, std::move(place));
      if (!samples) return false;
      record.samples = std::move(*samples);
    }
    scan_.samples_bytes = std::max(scan_.samples_bytes, end);
    if (has_begun(record.id)) begin_nothing();
    scan_.due.erase(record.id);
    sink_(std::move(record));
    return true;
  }

  bool has_begun(const std::string& id) const { return scan_.began && scan_.began->id == id; }
  void begin_nothing() {
    scan_.began.reset();
    pieces_.clear();
  }

  // Joins the series of the point that has begun from its progress lines. A piece whose checksum does not
  // match is left out: progress is not synced, and if all goes well a complete record follows anyway.
  std::vector<Series> joined() {
    std::vector<std::vector<Series>> pieces;
    if (load_ == Load::everything)
      for (SamplesPlace& place : pieces_)
        if (auto piece = read_samples(samples_, samples_path_, std::move(place)))
          pieces.push_back(std::move(*piece));
    return join_columns(pieces);
  }

  std::string study_, path_, samples_path_;
  Load load_;
  const RecordSink& sink_;
  File samples_;
  JournalScan scan_;
  Older older_;
  std::vector<SamplesPlace> pieces_;  // pieces of the series of scan_.began
};

}  // namespace

std::optional<JournalScan> scan_journal(const std::string& study, Load load, const RecordSink& sink) {
  return Scanner(study, load, sink).run();
}

namespace {

std::string temporary_path(const std::string& study) { return journal_path(study) + ".tmp"; }

[[noreturn]] void refuse_busy(const std::string& study) {
  throw StudyBusy(study + " is being written by another process; wait for it, or choose another output");
}

void require_valid(const std::vector<Series>& samples) {
  for (auto s = samples.begin(); s != samples.end(); ++s) {
    const auto same_name = [&](const auto& other) { return other.name == s->name; };
    ENSURE(std::any_of(kSeries.begin(), kSeries.end(), same_name), "no series '" + s->name + "' in fields.h");
    ENSURE(std::none_of(samples.begin(), s, same_name), "two series '" + s->name + "'");
    ENSURE(s->rows > 0 && s->columns >= 0 && s->rows * s->columns == static_cast<int64_t>(s->values.size()),
           "shape of series '" + s->name + "'");
  }
}

// Undoes a failed write. The error of that write is the one to report, so an error here is ignored: if the
// disk has become read-only, a partly written line stays, and the next open() removes it.
void cut_back(AppendFile& file, int64_t size) noexcept {
  try {
    file.cut(size);
  } catch (const std::exception&) {
  }
}

}  // namespace

bool has_journal(const std::string& study) {
  struct stat lines, samples;
  if (::stat(journal_path(study).c_str(), &lines) != 0) return false;
  // An empty journal is a reservation, unless there are samples: then it is a damaged journal.
  return lines.st_size > 0 || (::stat(samples_path(study).c_str(), &samples) == 0 && samples.st_size > 0);
}

bool reserve_study(const std::string& study) {
  const std::string path = journal_path(study);
  const File file(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (!file && errno != EEXIST)
    throw UsageError("cannot write " + path + ": " + std::strerror(errno) + "; choose another place with -o");
  if (!file) return false;
  if (!file_exists(study)) return true;
  remove_file(path);  // checked last, because a job may have published the study meanwhile
  return false;
}

void release_study(const std::string& study) noexcept {
  try {
    if (!file_exists(journal_path(study)) || has_journal(study)) return;
    const Journal claimed = Journal::claim(study);  // from here on no rank can begin the study
    for (const std::string& path : {samples_path(study), journal_path(study), temporary_path(study)})
      remove_file(path);
  } catch (const std::exception&) {  // the study was begun after all, or the files cannot be removed
  }
}

// The lock on the temporary file decides which process starts the study. If another process has replaced that
// file since it was opened, the attempt is repeated.
Journal Journal::claim(const std::string& study) {
  const std::string path = temporary_path(study);
  for (;;) {
    File file = open_or_create(path, O_RDWR);
    const Lock lock = lock_file(file, path);
    if (lock == Lock::held_by_another) refuse_busy(study);
    if (lock == Lock::replaced) continue;
    if (has_journal(study)) {  // another process was faster
      remove_file(path);
      refuse_busy(study);
    }
    Journal journal(study);
    journal.lines_ = AppendFile(std::move(file), path);
    return journal;
  }
}

std::optional<Journal> Journal::open(const std::string& study) {
  const std::string path = journal_path(study);
  for (;;) {
    File file = open_if_exists(path, O_RDWR);
    if (!file) return {};
    const Lock lock = lock_file(file, path);
    if (lock == Lock::held_by_another) refuse_busy(study);
    if (lock == Lock::replaced) continue;
    // The journal is empty, so it only reserves the name.
    if (!has_journal(study)) return {};
    Journal journal(study);
    auto scan = scan_journal(study, Load::everything, [&](Record&& record) { journal.know(record); });
    if (!scan)
      throw UsageError(samples_path(study) + ", which belongs to " + path + ", is missing; put it back");
    journal.found_ = std::move(*scan);
    if (journal.found_.began) journal.found_.began->samples.clear();  // they stay in the file of samples
    for (auto& [id, known] : journal.known_)
      if (journal.found_.due.contains(id)) known.attempts = 0;
    journal.lines_ = AppendFile(std::move(file), path);
    journal.lines_.cut(journal.found_.whole_bytes);
    journal.samples_ = AppendFile(open_or_create(samples_path(study), O_RDWR), samples_path(study));
    journal.samples_.cut(journal.found_.samples_bytes);
    return journal;
  }
}

// Everything is written and synced under the temporary name before the journal gets its own name, so no
// reader ever sees a part of it.
void Journal::start(const Environment& environment, const RecordSource& existing, const DueRule& is_due) {
  try {
    lines_.cut(0);
    samples_ = AppendFile(open_or_create(samples_path(study_), O_RDWR | O_TRUNC), samples_path(study_));
    lines_.write(to_line(environment));
    existing([&](Record&& record) {
      lines_.write(to_line(record, write_samples(record.samples)));
      know(record);
    });
    mark_due(is_due);
    samples_.sync();
    lines_.sync();
  } catch (...) {
    remove_file(samples_path(study_));
    remove_file(lines_.path());
    throw;
  }
  rename_file(lines_.path(), journal_path(study_));
  lines_.renamed(journal_path(study_));
}

SamplesPlace Journal::write_samples(const std::vector<Series>& samples) {
  require_valid(samples);
  SamplesPlace place{samples_.size(), {}, {}};
  uint64_t hash = kHashStart;
  for (const Series& s : samples) {
    samples_.write(bytes_of(s.values));
    hash = hash_bytes(bytes_of(s.values), hash);
    place.series.push_back({s.name, s.rows, s.columns, {}});
  }
  place.checksum = hash_text(hash);
  return place;
}

void Journal::know(const Record& record) {
  known_[record.id] = {record.outcome,
                       record.attempts,
                       record.ended_job,
                       num_records_++,
                       record.ended_job ? record.reason : "",
                       record.measures.num_operations,
                       record.measures.num_load_units};
}

void Journal::append(const Record& record) {
  const auto before = known_.find(record.id);
  ENSURE(before == known_.end() || !before->second.is_over(), "recorded already: " + record.id);
  write_with_samples(
      record.samples, [&](const SamplesPlace& place) { return to_line(record, place); }, /*durable=*/true);
  know(record);
}

void Journal::extend(const std::string& id, const std::vector<Series>& columns, bool durable) {
  write_with_samples(
      columns,
      [&](const SamplesPlace& place) {
        return to_line(Extended{id, place});
      },
      durable);
}

// Writes samples and then the line that points to them. If either fails, both files are cut back to their
// former size.
void Journal::write_with_samples(const std::vector<Series>& samples,
                                 const std::function<std::string(const SamplesPlace&)>& line, bool durable) {
  const int64_t num_lines_bytes = lines_.size(), num_samples_bytes = samples_.size();
  try {
    const SamplesPlace place = write_samples(samples);
    // A line that is not durable may leave samples behind that are not synced. The next durable line syncs
    // them before itself, even if it has no samples of its own.
    samples_are_synced_ = samples_are_synced_ && samples.empty();
    if (durable && !samples_are_synced_) {
      samples_.sync();
      samples_are_synced_ = true;
    }
    lines_.write(line(place));
    if (durable) lines_.sync();
  } catch (...) {
    cut_back(lines_, num_lines_bytes);
    cut_back(samples_, num_samples_bytes);
    throw;
  }
}

void Journal::begin(const Record& record) { write_line(to_began_line(record)); }

void Journal::append(const Environment& environment) {
  write_line(to_line(environment));
  lines_.sync();
}

// The line is not synced here. The lines that callers append next are synced, and make it durable, too.
void Journal::mark_due(const DueRule& is_due) {
  Due due;
  for (const auto& [id, known] : known_)
    if (is_due && is_due(id, known)) due.ids.push_back(id);
  if (due.ids.empty()) return;
  write_line(to_line(due));
  for (const std::string& id : due.ids) known_.at(id).attempts = 0;
}

void Journal::write_line(const std::string& line) {
  const int64_t before = lines_.size();
  try {
    lines_.write(line);
  } catch (...) {
    cut_back(lines_, before);
    throw;
  }
}

// The journal is renamed first, to the name that claim() locks, and deleted last. So the lock is held under a
// name that others look at until the samples are gone.
void Journal::remove() {
  rename_file(journal_path(study_), temporary_path(study_));
  remove_file(samples_path(study_));
  remove_file(temporary_path(study_));
}

}  // namespace shardmark

// The journal of a running study. Note [Journal]
//
// A sweep may run for hours and be killed at any moment, so every finished record goes to the disk at once.
// An HDF5 file that is open for writing would not survive a crash. So records are appended to a text file,
// and the HDF5 file is written when the sweep ends.
//   x.h5.journal   {"checksum":"<16 hex>","schema":"1.0","environment":{...}}         first line
//                  {"checksum":"<16 hex>","due":["<id>",...]}                         points to measure again
//                  {"checksum":"<16 hex>","began":{...}}                              a point begins
//                  {"checksum":"<16 hex>","progress":"<id>","samples":{...}}          more columns
//                  {"checksum":"<16 hex>","record":{...},
//                   "samples":{"offset":...,"checksum":...,"series":[...]}}           the point is over
//   x.h5.samples   the values of all series, one after the other: float64 in this machine's byte order
// The checksum covers the rest of its line. Samples are synced before the line that points to them, so a
// complete line always has its samples. After a crash only the last line can be incomplete, and it is cut
// off. An empty journal holds nothing: it reserves the study's name for a job that is about to start. The
// record of a point that ended its job has no samples of its own; it takes those of the progress lines before
// it. A later record of a point replaces an earlier one. If a journal and a published file exist side by
// side, the journal holds everything that the file holds, and is the one that counts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "schema/environment.h"
#include "schema/fields.h"
#include "schema/file.h"
#include "schema/record.h"
#include "schema/study.h"

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
struct Opened {  // the first line of a start of the program
  Environment environment;
  int minor = kSchemaMinor;  // of the schema of the lines that follow
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
using JournalLine = std::variant<Opened, Began, Extended, Recorded, Due, Foreign>;

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

inline std::string journal_path(const std::string& study) { return study + ".journal"; }
inline std::string samples_path(const std::string& study) { return study + ".samples"; }

using RecordSink = std::function<void(Record&&)>;
using RecordSource = std::function<void(const RecordSink&)>;

struct JournalScan {
  Environment environment;    // environment of the latest launch
  int64_t whole_bytes = 0;    // size of the journal without an incomplete last line
  int64_t samples_bytes = 0;  // size of the samples that complete lines point to
  // The last point that was begun and has no record since, with its series so far.
  std::optional<Record> began;
  std::set<std::string> due;  // points to measure again that have no record since
  // Lines with a wrong checksum before the last complete line. A crash cannot leave these: they were damaged
  // later.
  int64_t num_damaged = 0;
  bool torn = false;
};

// Reads every complete line of a journal; this also works while it is being written. Returns nothing if there
// is no journal or an empty one. Throws UsageError if the first line is not that of a journal, or is of a
// newer schema.
std::optional<JournalScan> scan_journal(const std::string& study, Load load, const RecordSink& sink);

// Whether there is a journal that holds something: an empty one only reserves the name.
bool has_journal(const std::string& study);

// Reserves the study's name with an empty journal, for this process or for the ranks that it starts. Returns
// false if a study or another reservation has the name. One system call (open with O_EXCL) decides, so this
// is safe between the nodes of a shared file system, too.
bool reserve_study(const std::string& study);
// Releases the name if nothing was begun under it.
void release_study(const std::string& study) noexcept;

struct StudyBusy : UsageError {  // another process is writing the study
  using UsageError::UsageError;
};

// Writes the journal, and holds the study's lock as long as it lives.
class Journal {
 public:
  // Acquires the right to start the study. Throws UsageError if another process has it.
  static Journal claim(const std::string& study);
  // Opens an existing journal and drops a last line that was only partly written. Returns nothing if there is
  // no journal.
  static std::optional<Journal> open(const std::string& study);

  // To be called after claim(). The journal appears under its final name in one step, with all of `existing`
  // in it.
  void start(const Environment& environment, const RecordSource& existing, const DueRule& is_due = {});
  void begin(const Record& record);  // not durable by itself; unchanged when it throws
  // Adds columns to the series of the point that has begun. The journal is unchanged if this throws.
  void extend(const std::string& id, const std::vector<Series>& columns, bool durable);
  void append(const Record& record);  // durable when it returns; unchanged when it throws
  void append(const Environment& environment);
  void mark_due(const DueRule& is_due);  // durable with the next append
  void remove();                         // after publishing; the lock is released last

  const JournalScan& found() const { return found_; }  // what open() read
  const std::map<std::string, Known>& known() const { return known_; }

 private:
  explicit Journal(std::string study) : study_(std::move(study)) {}
  SamplesPlace write_samples(const std::vector<Series>& samples);
  void write_with_samples(const std::vector<Series>& samples,
                          const std::function<std::string(const SamplesPlace&)>& line, bool durable);
  void write_line(const std::string& line);
  void know(const Record& record);

  std::string study_;
  AppendFile lines_;
  AppendFile samples_;
  JournalScan found_;
  std::map<std::string, Known> known_;  // by id
  int64_t num_records_ = 0;
  bool samples_are_synced_ = true;
};

}  // namespace shardmark

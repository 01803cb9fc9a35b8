// The journal of a running study. Note [Journal]
//   x.h5.journal   {"checksum":"<16 hex>","schema":"1.0","environment":{...}}                     first line
//                  {"checksum":"<16 hex>","due":["<id>",...]}          these are to be measured again
//                  {"checksum":"<16 hex>","began":{...}}                                  a point begins
//                  {"checksum":"<16 hex>","progress":"<id>","samples":{...}}   its series so far: more
//                  columns
//                  {"checksum":"<16 hex>","record":{...},
//                   "samples":{"offset":...,"checksum":...,"series":[...]}}              and is over
//   x.h5.samples   the series' values back to back: float64 of this machine's byte order
// The checksum is of everything behind it up to the line's end. Samples are synced before the line that
// points at them, so a line that is whole has its samples: after a crash only the last line can be torn, and
// it is cut off. An empty journal holds nothing: it reserves the study's name for a job that is about to
// start. A record that ended its job has no samples of its own: it takes those of the progress lines before
// it. A later record of the same point takes the place of an earlier one. Where a journal and a
// published file lie side by side, the journal holds all of the file and is the truth.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "schema/file.h"
#include "schema/journal_line.h"
#include "schema/study.h"

namespace shardmark {

inline std::string journal_path(const std::string& study) { return study + ".journal"; }
inline std::string samples_path(const std::string& study) { return study + ".samples"; }

using RecordSink = std::function<void(Record&&)>;
using RecordSource = std::function<void(const RecordSink&)>;

struct JournalScan {
  Environment environment;      // of the latest launch
  int64_t whole_bytes = 0;      // of the journal: its end without a torn line
  int64_t samples_bytes = 0;    // that whole lines point at
  std::optional<Record> began;  // the last point that was begun and has no record since; its series so far
  std::set<std::string> due;    // that have no record since
  int64_t num_damaged = 0;      // broken lines before the last whole one: not torn, but damaged later
  bool torn = false;
};

// Reads every whole line of a journal, also while it is written; nothing when there is no journal, or an
// empty one.
// UsageError: its first line is none of ours, or of a newer schema.
std::optional<JournalScan> scan_journal(const std::string& study, Load load, const RecordSink& sink);

// A journal that holds something: an empty one only reserves the name.
bool has_journal(const std::string& study);

// Takes the study's name, for this process or the ranks that it starts, with an empty journal; false where a
// study, or another reservation, has it. One system call decides (O_EXCL), also between nodes of a shared
// file system.
bool reserve_study(const std::string& study);
// Gives the name back where nothing was begun under it.
void release_study(const std::string& study) noexcept;

struct StudyBusy : UsageError {  // another process writes it
  using UsageError::UsageError;
};

// The writer; holds the study's lock while it lives.
class Journal {
 public:
  // Takes the right to start the study, or throws UsageError when another process has it.
  static Journal claim(const std::string& study);
  // Goes on with an existing journal, cut to its whole lines. Nothing when there is none.
  static std::optional<Journal> open(const std::string& study);

  // After claim(): the journal appears under its name at once, with all of `existing` in it.
  void start(const Environment& environment, const RecordSource& existing, const DueRule& is_due = {});
  void begin(const Record& record);  // not durable by itself; unchanged when it throws
  // Of the point that has begun; unchanged when it throws.
  void extend(const std::string& id, const std::vector<Series>& columns, bool durable);
  void append(const Record& record);  // durable when it returns; unchanged when it throws
  void append(const Environment& environment);
  void mark_due(const DueRule& is_due);  // durable with the next append
  void remove();                         // after publishing; the lock goes last

  const JournalScan& found() const { return found_; }  // what open() saw
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

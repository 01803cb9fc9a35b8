// A study on disk: a journal while it runs, one HDF5 file when it is published. Only rank 0 writes.
//   x.h5.journal   one JSON line for each record (checksum, place of its samples), appended and synced
//   x.h5.samples   raw samples, binary, appended and synced before the line that points to them
//   x.h5           made from the journal: written to a temporary file, synced and renamed
// The journal is removed when x.h5 is complete.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

// What a study knows about a point. A point in which a rank crashed or hung is tried once more.
struct Known {
  Outcome outcome = Outcome::ok;
  int64_t attempts = 1;  // 0: none counts, the point is to be measured again
  bool ended_job = false;
  // Number of its latest record among all records that were appended.
  int64_t place = 0;
  std::string reason = "";  // empty unless a rank crashed or hung
  // The operations and load units of a round, for a collective that runs together with a load.
  int64_t num_operations = 0, num_load_units = 0;
  bool is_over() const { return attempts > 0 && (!ended_job || attempts >= kMostAttempts); }
  bool has_failed() const { return is_over() && (is_bad(outcome) || ended_job); }
  static constexpr int64_t kMostAttempts = 2;
};

// Decides which points of a study are to be measured again. Their records stay until then.
using DueRule = std::function<bool(const std::string& id, const Known& known)>;

// Whether a study may be resumed on other devices. Points of a sweep are compared with each other, so they
// need the same ones (where_it_began); a training run may move (anywhere).
enum class GoesOn { where_it_began, anywhere };

class Study {
 public:
  // Creates a new study. Throws UsageError if the output or its journal exists, if another process holds it
  // (flock, which ends with the process), or if the disk is full or cannot be written.
  static Study create(const std::string& path, const Environment& environment);
  // Resumes an existing study: a journal that a killed run left, or a published file, which is turned back
  // into a journal. A last line that was only partly written is removed. If nothing is at `path`, this is
  // create(). With GoesOn::where_it_began, a UsageError names the difference if devices, ranks, libraries or
  // the revision differ. With GoesOn::anywhere, the study gets those of the latest launch, and its facts say
  // what was different before.
  static Study resume(const std::string& path, const Environment& environment, const DueRule& is_due = {},
                      GoesOn goes_on = GoesOn::where_it_began);

  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  // Records in the journal that this point is about to be measured; not synced.
  void begin(const Record& record);
  // Appends columns to the series of the point, so that they are kept if its ranks die. Synced only if
  // `durable`.
  void extend(const std::string& id, const std::vector<Series>& columns, bool durable = false);
  void append(const Record& record);  // durable when it returns; its cost does not grow with the study
  // Writes x.h5 and removes the journal. to_go holds the ids of planned points that other ranks still have to
  // measure, because they need another start of the ranks.
  void publish(const std::vector<std::string>& to_go = {});
  const std::map<std::string, Known>& known() const;  // by id
  int64_t num_due() const;                            // points with a record that are to be measured again

  // Whether a process is writing the study; false if there is no journal.
  static bool is_busy(const std::string& path);

  // Called after a job ended in the middle of a measurement: appends a record with this outcome and reason
  // for the point that was begun. Returns that record, whose series are those that extend() was given, or
  // nothing if no point was being measured. Throws UsageError as resume() does.
  static std::optional<Record> record_crash(const std::string& path, Outcome outcome,
                                            const std::string& reason);

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Writes a complete study from records that exist already; there is no journal. Throws UsageError if
// something is at `path`, or no file can be made there. Throws SystemError if writing fails, mostly because
// the disk is full; the unfinished file is removed.
void write_study(const std::string& path, const Environment& environment, const std::vector<Record>& records);

struct StudyData {
  std::string path;
  Environment environment;
  std::vector<Record> records;
  // If the study is a journal: the point that is being measured, or was when its job ended, once it has
  // series.
  std::optional<Record> under_way = {};
  // How many points of the latest launch's plan are still to be measured, for a sweep. Absent from a
  // published study that has none left.
  std::optional<int64_t> num_to_go = {};
};

// The fact of a sweep's environment that lists the ids of its planned points. A journal lists all of them, a
// published study only those still to be measured. read_study removes the fact and fills num_to_go from it.
inline constexpr const char* kPlannedFact = "planned";
// The fact that says how much of the cores other processes used before a launch measured, if it was enough to
// spoil times. A launch that resumed the study has its own.
inline constexpr const char* kBusyFact = "busy";
// Returns these lines for the launch that began the study and for all that resumed it.
std::vector<std::string> busy_launches(const Environment& environment);
// Returns the id of the planned search for the largest batch of which this point was a try. The point of a
// record names its transport, while the planned point may leave it open.
std::optional<std::string> search_of(Point point, const std::set<std::string>& planned);

// The fact that holds the command that resumes a sweep's study, as a user would type it.
inline constexpr const char* kResumeFact = "resume_with";

enum class Load { everything, without_samples };  // the raw samples of thousands of ranks are large

// Reads a published study or a journal and returns the latest record of each point. For `x.h5`, the journal
// x.h5.journal is read if there is one. Throws UsageError if the study is missing, damaged, not a study, or
// of a newer schema.
StudyData read_study(const std::string& path, Load load = Load::everything);

}  // namespace shardmark

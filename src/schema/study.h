// A study on disk: a journal while it runs, one HDF5 file when it is published. Rank 0 writes alone.
//   x.h5.journal   one JSON line a record (checksum, place of its samples), appended and synced
//   x.h5.samples   raw samples, binary, appended and synced before the line that points at them
//   x.h5           published from the journal: written to a temporary, synced, renamed; then the journal is
//   removed
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

// What a study holds of a point. After a rank crashed or hung in it, it is tried once more.
struct Known {
  Outcome outcome = Outcome::ok;
  int64_t attempts = 1;  // 0: none that counts, it is to be measured
  bool ended_job = false;
  int64_t place = 0;                               // of its latest record among all that were appended
  std::string reason = "";                         // where a rank crashed or hung
  int64_t num_operations = 0, num_load_units = 0;  // of a round of a collective beside a load
  bool is_over() const { return attempts > 0 && (!ended_job || attempts >= kMostAttempts); }
  bool has_failed() const { return is_over() && (is_bad(outcome) || ended_job); }
  static constexpr int64_t kMostAttempts = 2;
};

// Which points of a study are to be measured again; their records stay until then.
using DueRule = std::function<bool(const std::string& id, const Known& known)>;

// Where a study may go on: points of a sweep are compared with each other, a training run moves.
enum class GoesOn { where_it_began, anywhere };

class Study {
 public:
  // A new study. Refuses (UsageError) an output or journal that exists, and one that another process holds
  // (flock, which no crash leaves behind); an unwritable or full disk is one clear line as well.
  static Study create(const std::string& path, const Environment& environment);
  // Goes on with an existing study: a journal left by a killed run, or a published file (turned back into a
  // journal). A torn last line is cut off. With nothing at `path` it is create(). UsageError names what
  // differs when devices, ranks, libraries or revision do; where it goes on anywhere, they are those of the
  // latest launch, and its facts say what was different before.
  static Study resume(const std::string& path, const Environment& environment, const DueRule& is_due = {},
                      GoesOn goes_on = GoesOn::where_it_began);

  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  void begin(const Record& record);  // its point is about to be measured; says so in the journal, unsynced
  // Further columns of the point's series, so that they are kept where its ranks die; unsynced, unless
  // durable.
  void extend(const std::string& id, const std::vector<Series>& columns, bool durable = false);
  void append(const Record& record);  // durable when it returns; cost independent of the study's length
  // Writes x.h5 and removes the journal. to_go: ids of points of the plan that need another start of the
  // ranks.
  void publish(const std::vector<std::string>& to_go = {});
  const std::map<std::string, Known>& known() const;  // by id
  int64_t num_due() const;                            // points with a record that are to be measured again

  // Does a process hold it? False where there is none.
  static bool is_busy(const std::string& path);

  // After a job that ended while it measured: gives the point that it had begun this outcome and reason. The
  // record that was appended, whose series are those that extend() was given; or nothing where no point was
  // under way. UsageError as resume().
  static std::optional<Record> record_crash(const std::string& path, Outcome outcome,
                                            const std::string& reason);

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A study that is there at once, of records that nobody measures any more: published without a journal.
// UsageError: something is at `path`, or no file can be there. SystemError: writing it failed, for want of
// room mostly; nothing is left of it.
void write_study(const std::string& path, const Environment& environment, const std::vector<Record>& records);

struct StudyData {
  std::string path;
  Environment environment;
  std::vector<Record> records;
  // Of a journal: the point that is being measured, or was when its job ended, if it has series by then.
  std::optional<Record> under_way = {};
  // Of a sweep: how many points of its latest launch's plan are still to be measured; where there are none,
  // of a journal alone.
  std::optional<int64_t> num_to_go = {};
};

// Of a sweep: the ids of the points of its plan, a list among the facts of its environment. A journal keeps
// it; a published study keeps what is to go. read_study takes it out.
inline constexpr const char* kPlannedFact = "planned";
// What other processes used of the cores before a launch measured, a line among the facts of its environment
// where that spoils times. Launches that resumed the study have theirs.
inline constexpr const char* kBusyFact = "busy";
// Those lines, of the launch that began the study and of those that resumed it.
std::vector<std::string> busy_launches(const Environment& environment);
// The search for the largest batch of which this point was a try, by its id among the planned ones. A
// record's point names the transport, where the plan need not.
std::optional<std::string> search_of(Point point, const std::set<std::string>& planned);

// The command that goes on with a sweep's study, as a user types it, among the facts of its environment.
inline constexpr const char* kResumeFact = "resume_with";

enum class Load { everything, without_samples };  // raw samples of thousands of ranks are large

// Reads a published study or a journal (x.h5 whose journal alone exists is found by itself): the latest
// record of each point. UsageError:
// missing, damaged, not a study, or written by a newer schema.
StudyData read_study(const std::string& path, Load load = Load::everything);

}  // namespace shardmark

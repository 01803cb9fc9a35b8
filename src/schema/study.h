// A study on disk: a journal while it runs, one HDF5 file when it is published. Rank 0 writes alone.
//   x.h5.journal   one JSON line a record (checksum, place of its samples), appended and synced
//   x.h5.samples   raw samples, binary, appended and synced before the line that points at them
//   x.h5           published from the journal: written to a temporary, synced, renamed; then the journal is
//   removed
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schema/record.h"

namespace shardmark {

class Study {
 public:
  // A new study. Refuses (UsageError) an output or journal that exists, and one that another process holds
  // (flock, which no crash leaves behind); an unwritable or full disk is one clear line as well.
  static Study create(const std::string& path, const Environment& environment);
  // Goes on with an existing study: a journal left by a killed run, or a published file (turned back into a
  // journal). A torn last line is cut off. UsageError names what differs when devices, ranks, libraries or
  // revision do. With nothing at `path` it is create().
  static Study resume(const std::string& path, const Environment& environment);

  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  void append(const Record& record);  // durable when it returns; cost independent of the study's length
  void publish();                     // writes x.h5 and removes the journal
  const std::map<std::string, Outcome>& finished() const;  // by id: every record that is there already

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct StudyData {
  std::string path;
  Environment environment;
  std::vector<Record> records;
};

enum class Load { everything, without_samples };  // raw samples of thousands of ranks are large

// Reads a published study or a journal (x.h5 whose journal alone exists is found by itself). UsageError:
// missing, damaged, not a study, or written by a newer schema.
StudyData read_study(const std::string& path, Load load = Load::everything);

}  // namespace shardmark

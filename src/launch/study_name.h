// The default name of a launch's study: results/<suite>-0001.h5, -0002 and so on. results/<suite>.h5 is a
// link to the newest.
#pragma once

#include <string>

namespace shardmark {

// "gpt2" for suites/gpt2.yaml.
std::string suite_stem(const std::string& suite);

// Returns the next free name, which another launch may take first; with `resume` the newest one (UsageError
// if there is none). A folder that does not exist counts as empty.
std::string numbered_study(const std::string& folder, const std::string& stem, bool resume);

// Reserves the next free name for one launch. It is released at the end if nothing was begun under it. After
// a SIGKILL the next launch skips its number, and --resume begins it.
class ReservedStudy {
 public:
  ReservedStudy(const std::string& folder, const std::string& stem);
  ~ReservedStudy();
  ReservedStudy(const ReservedStudy&) = delete;
  ReservedStudy& operator=(const ReservedStudy&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Makes <folder>/<stem>.h5 a link to a study in the same folder, unless it already leads to one with a higher
// number. A file of that name that is not a link is kept.
void link_newest(const std::string& study, const std::string& stem);

}  // namespace shardmark

// Where a launch keeps its study by default: results/<suite>-0001.h5, -0002 ..., and
// results/<suite>.h5 links the newest.
#pragma once

#include <string>

namespace shardmark {

// "gpt2" of suites/gpt2.yaml.
std::string suite_stem(const std::string& suite);

// The next free one, which another launch may take first; with resume the newest (UsageError where there is
// none). A folder that is not there is an empty one.
std::string numbered_study(const std::string& folder, const std::string& stem, bool resume);

// The next free one, for one launch alone. Given back at the end where nothing was begun; after a kill -9 its
// number is passed over by the next launch, and --resume begins it.
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

// Makes <folder>/<stem>.h5 lead to a study in the same folder, unless it leads to one with a higher number; a
// file of that name that is no link stays.
void link_newest(const std::string& study, const std::string& stem);

}  // namespace shardmark

// The study as a sweep writes it: points that begin and end, and from the watchdog's thread one that hangs.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "schema/study.h"

namespace shardmark {

class StudyWriter {
 public:
  explicit StudyWriter(Study* study)
      : study_(study) {}  // nullptr on ranks that write none: then nothing is called

  Known before(const std::string& id) const;  // what is known of a point; attempts 0: nothing
  void begin(const Record& record);
  // Columns that the series of the point under way have gained: they stay where its ranks die or hang. False,
  // with a warning the first time, where they could not be written.
  bool extend(const std::vector<Series>& columns, bool durable = false);
  void end(const Record& record);
  // The point that is under way gets outcome timed_out and ends the job. Any thread may call it; nothing
  // happens where the study is being written and does not come free within a second.
  void time_out(const std::string& reason);

 private:
  Study* study_;
  std::timed_mutex writing_;
  std::optional<Record> under_way_;
  bool has_warned_ = false;  // since the last success
};

}  // namespace shardmark

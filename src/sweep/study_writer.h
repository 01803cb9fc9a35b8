// Writes the study of a sweep: points that begin and end, and, from the watchdog's thread, a point that
// hangs.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "schema/study.h"

namespace shardmark {

class StudyWriter {
 public:
  explicit StudyWriter(Study* study)
      // `study` is nullptr on ranks other than 0, which call nothing else.
      : study_(study) {}

  Known before(const std::string& id) const;  // what is known about a point; attempts 0: nothing
  void begin(const Record& record);
  // Appends columns to the series of the current point, so that they are kept if its ranks die or hang.
  // Returns false if they could not be written; the first failure is logged as a warning.
  bool extend(const std::vector<Series>& columns, bool durable = false);
  void end(const Record& record);
  // Gives the current point the outcome timed_out and marks that it ended the job. Any thread may call this.
  // If another thread is writing the study and does not finish within a second, nothing is written.
  void time_out(const std::string& reason);

 private:
  Study* study_;
  std::timed_mutex writing_;
  std::optional<Record> under_way_;
  bool has_warned_ = false;  // since the last success
};

}  // namespace shardmark

// What training costs once failures are counted in: kept throughput, money and energy, of points that were
// measured or predicted.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/stats/failures.h"
#include "analysis/table/table.h"

namespace shardmark {

// What a user says of failures; without a time to restart there is no goodput.
struct FailureQuery {
  double per_node_hour = kPublishedFailures.front().per_node_hour;
  double restart_s = Measures::kNone;
  double write_s = Measures::kNone, read_s = Measures::kNone;  // none: as runs and points measured
  double watts = Measures::kNone;                              // of a rank; none: as GPUs measured
  bool is_asked() const { return restart_s >= 0; }
};

struct GoodputRow {
  const MergedPoint* like;  // measured: itself; predicted: of its family
  Point point;
  int64_t nodes;  // 0 where the study does not say
  Throughput speed;
  double watts;                 // of a rank
  Interruptions job;            // without a measured time to read, that is 0
  double least_interval_s = 0;  // a checkpoint that is written beside steps ends before the next one begins
  double interval_s() const { return std::max(daly_interval_s(job), least_interval_s); }
  double share() const { return goodput(job, interval_s()); }
  double step_s() const { return static_cast<double>(point.global_batch()) / speed.samples_per_s; }
};

// Makes rows. A measured point that wrote checkpoints (axis `save`) has its own times. Where they were
// written beside steps, these stop for the stall alone; the interval is then at least as long as a write, and
// a failure loses what was done during it in addition. Other points, and predicted ones, are of whole
// checkpoints, which hold the same state whatever the ranks and the strategy: runs of `train` and points with
// `save: full` of the same model, optimizer and precision on the same machine say how long they take. The
// median of all counts; where points wrote to several folders, that of the slowest.
class GoodputRows {
 public:
  GoodputRows(const std::vector<StudyData>& studies, const FailureQuery& query);
  // Nothing is added where nobody knows how long a checkpoint takes.
  void add(const MergedPoint& like, const Point& point, int64_t nodes, const Throughput& speed, double watts);
  // UsageError: there are none, because nothing was trained or no checkpoint was timed.
  std::vector<GoodputRow> rows() const;

 private:
  struct Times {
    std::vector<double> write_s, read_s;
  };
  static Times slowest(const std::map<std::string, Times>& by_folder);
  FailureQuery query_;
  std::map<std::string, std::map<std::string, Times>> measured_;  // by what is in the state, and by folder
  std::vector<GoodputRow> rows_;
  bool any_added_ = false;  // whether or not it became a row
};

// Power of a rank's device over a measured step; a NaN where none was measured.
double watts_of_rank(const MergedPoint& merged);

// points: those that the rows are like.
Table goodput_table(const std::vector<MergedPoint>& points, const std::vector<GoodputRow>& rows,
                    const FailureQuery& query, double price_per_gpu_hour);

}  // namespace shardmark

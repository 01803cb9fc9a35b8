// What checkpoints take: writing, the time that training stops for one, reading.
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

// Bytes per second in GB/s, GB = 10^9 bytes, as data sheets of disks have it.
ColumnOf<MergedPoint> rate_column(const char* group, double Measures::*seconds) {
  return {{"rate", "GB/s", true, false, group}, [seconds](const MergedPoint& merged) {
            return cells::number(merged.measures.checkpoint_bytes / (merged.measures.*seconds * 1e9));
          }};
}

}  // namespace

Table checkpoints_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Table table = make_table(
      "checkpoints", "Checkpoints: what writing and reading one takes",
      join(labels.columns(),
           columns_of({{"checkpoint_bytes", "state"}, {"predicted_checkpoint_bytes", "state"}}),
           columns_of({{"checkpoint_write_time", "write", "time"}}),
           ColumnsOf<MergedPoint>{rate_column("write", &Measures::checkpoint_write_s)},
           columns_of({{"checkpoint_stall_time", "", "stall"}, {"checkpoint_read_time", "read", "time"}}),
           ColumnsOf<MergedPoint>{rate_column("read", &Measures::checkpoint_read_s)}),
      training_points(points, [](const auto& merged) { return merged.measures.checkpoint_write_s > 0; }));
  table.explanations.emplace_back(
      "full: rank 0 gathers the whole state and writes one file; sharded: each rank writes what it owns. The "
      "rates are bytes of all files / time, 10^9 bytes per GB. The state that was read is compared with the "
      "one that was written by a hash of all its bits; a point where they differ is `wrong`.");
  return table;
}

}  // namespace shardmark

// The columns that say which training point a row is about, the same in every table: machine, transport,
// model, data, optimizer, precision and what goes with it, accumulation and seed (folded where all rows
// agree), and its warnings.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/frame/groups.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "schema/axes.h"

namespace shardmark {

// The kinds of a point's warnings, "uncertain, warming up"; empty where there are none.
Cell warning_cell(const MergedPoint& merged);

// Nodes and machine, which people see only in reports where points differ in them alone.
ColumnOf<MergedPoint> nodes_column(Starts starts = Starts::nothing);
ColumnOf<MergedPoint> machine_column(Starts starts = Starts::nothing);

// The point of a row: itself, or what the row holds of it.
inline const MergedPoint& point_of(const MergedPoint& merged) { return merged; }
template <class Row>
const MergedPoint& point_of(const Row& row) {
  return *row.merged;
}

// samples/s, which people see where samples are no tokens; tokens/s, and those of a rank where there are
// several; MFU, and the share of a matrix product's FLOP/s.
ColumnsOf<Throughput> throughput_columns();
ColumnsOf<MergedPoint> point_throughput_columns();

class TrainingColumns {
 public:
  // Collectives among the points are passed over.
  explicit TrainingColumns(const std::vector<MergedPoint>& points);

  static std::vector<Column> family_columns();
  const std::vector<Cell>& family_cells(const MergedPoint& merged) const {
    return family_cells_.at(merged.family);
  }
  const Cell& strategy(const MergedPoint& merged) const { return strategy_cells_.at(merged.strategy); }

  // As columns of a table, which refer to this object.
  ColumnsOf<MergedPoint> family() const;
  ColumnsOf<MergedPoint> batch_ranks_strategy() const;
  // Both, for tables that compare strategies with each other.
  ColumnsOf<MergedPoint> columns() const { return join(family(), batch_ranks_strategy()); }
  static ColumnsOf<MergedPoint> warnings();  // repeats, kinds of warnings: last in a table

  std::vector<std::string> warning_notes() const;  // what they mean, of those that are there
  std::vector<std::string> explanations() const;   // how repeats were merged, where there are any

 private:
  std::unordered_map<std::string, std::vector<Cell>> family_cells_;  // by MergedPoint::family
  std::unordered_map<std::string, Cell> strategy_cells_;             // by MergedPoint::strategy
  bool any_repeats_ = false;
  std::set<std::string> warnings_;
};

}  // namespace shardmark

// The columns that say which training point a row is about, the same in every table: machine, transport,
// model, data, optimizer, precision and what goes with it, accumulation and seed (folded where all rows
// agree), and marks that warn of a point.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/labels.h"
#include "analysis/merged.h"
#include "analysis/table.h"
#include "schema/axes.h"

namespace shardmark {

// The kinds of a point's doubts, "uncertain, warming up"; empty where there are none.
Cell doubt_cell(const MergedPoint& merged);

class TrainingColumns {
 public:
  // Collectives among the points are passed over.
  explicit TrainingColumns(const std::vector<MergedPoint>& points);

  static std::vector<Column> family_columns();
  const std::vector<Cell>& family_cells(const MergedPoint& merged) const {
    return family_cells_.at(merged.family);
  }
  const Cell& strategy(const MergedPoint& merged) const { return strategy_cells_.at(merged.strategy); }

  // The family, batch size, ranks, and strategy: for tables that compare strategies with each other.
  static std::vector<Column> columns();
  std::vector<Cell> cells(const MergedPoint& merged) const;
  static constexpr size_t kNumFamilyColumns =
      3 + std::ranges::count_if(kTrainingAxes, [](const AxisRow& axis) { return axis.heading != nullptr; });
  // Of these: rows that differ in the others stand together.
  static constexpr size_t kNumSectionColumns =
      3 + std::ranges::count_if(kTrainingAxes, [](const AxisRow& axis) { return axis.is_section; });
  static constexpr size_t kNumGroupColumns = kNumFamilyColumns + 2;  // of columns(): all but the strategy

  static std::vector<Column> mark_columns();  // repeats, marks (kinds of doubts): last in a table
  static std::vector<Cell> mark_cells(const MergedPoint& merged);

  std::vector<std::string> mark_notes() const;  // what the marks mean, of those that are there
  // Those, the legend of the labels, and how repeats were merged: for the first table of a report.
  std::vector<std::string> notes() const;

 private:
  std::string strategy_text(const TrainingPoint& t) const;
  std::vector<Cell> make_family_cells(const MergedPoint& merged) const;
  Cell setting_cell(const AxisRow& axis, const Point& point) const;

  std::map<std::string, Labels> labels_;  // of models, data and optimizers, by the axis's key
  Labels strategies_;
  std::unordered_map<std::string, std::vector<Cell>> family_cells_;  // by MergedPoint::family
  std::unordered_map<std::string, Cell> strategy_cells_;             // by MergedPoint::strategy
  bool any_repeats_ = false;
  std::set<std::string> marks_;
};

}  // namespace shardmark

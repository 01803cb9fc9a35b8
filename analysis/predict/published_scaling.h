// Scaling that others measured and published: the first row calibrates the computing, the others are
// predicted from the links of the hardware's data sheets and held against what was measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "schema/point.h"
#include "specs/link.h"

namespace shardmark {

struct PublishedRow {
  Point point;
  std::string value;  // as published
  double step_s;      // that is
};

struct PublishedScaling {
  std::string name;     // "GPT 125M on A100 40GB"
  std::string source;   // where the rows stand
  std::string assumed;  // what the source does not say
  int64_t ranks_per_node;
  specs::Link node, across;        // of a rank: its link within the node, its share of those across
  std::vector<PublishedRow> rows;  // the first one calibrates
};

const std::vector<PublishedScaling>& published_scalings();

struct PredictedRow {
  double step_s;
  double communication_s;  // all operations of the step, one after the other
  double exposed_s;        // what of it computing does not hide
};

// One for each row; the first equals what was measured, by its making.
std::vector<PredictedRow> predicted_rows(const PublishedScaling& published);

Table published_table();

}  // namespace shardmark

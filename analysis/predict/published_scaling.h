// Scaling that others measured and published: the first row calibrates the computing, the others are
// predicted from the links of the hardware's data sheets and held against what was measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "schema/record.h"
#include "specs/link.h"

namespace shardmark {

struct PublishedRow {
  Point point;
  std::string value;                      // as published
  double step_s;                          // that is
  double memory_bytes = Measures::kNone;  // of a GPU at its peak
};

struct PublishedScaling {
  std::string name;     // "GPT 125M on A100 40GB"
  std::string source;   // where the rows stand
  std::string assumed;  // what the source does not say
  int64_t ranks_per_node;
  specs::Link node, across;        // of a rank: its link within the node, its share of those across
  std::vector<PublishedRow> rows;  // the first one calibrates
  std::string job = {};            // what its rows are layouts of: ranked with those of other tables
  std::string unpredicted = {};    // why no row is; empty: they are
};

const std::vector<PublishedScaling>& published_scalings();
std::vector<PublishedScaling> published_llamas();
// Layouts of their jobs that ran out of memory, by job.
std::vector<std::pair<std::string, Point>> published_failures();

// A training point with its choices resolved.
Point published_point(const std::string& model, const std::string& strategy, const std::string& optimizer,
                      int64_t ranks, int64_t batch_size);

struct PredictedRow {
  double step_s;
  double communication_s;  // all operations of the step, one after the other
  double exposed_s;        // what of it computing does not hide
};

// One for each row; the first step equals what was measured, by its making.
std::vector<PredictedRow> predicted_rows(const PublishedScaling& published);
// Of a GPU at its peak, by the strategy's program and the model's table of activations.
double predicted_memory_bytes(const Point& point);

Table published_table();
// Of each job and number of ranks which layout is the best, and which run out of memory.
Table published_layouts_table();

}  // namespace shardmark

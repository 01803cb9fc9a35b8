// A table of training results that people write themselves, as CSV or YAML. Columns are a suite's axes by
// their keys (ranks, model, strategy, batch_size or global_batch, precision ...), and:
//   step_s, step_ms            time of a step
//   samples_per_s, tokens_per_s    of all ranks together
//   tokens_per_sample          length of a sequence, where the model is none of ours
//   nodes, seed, launch        launch: rows of different ones are repeats of which each counts
// A model, strategy or word that this program does not know is kept as it is written, 'GPT-3 (175B)'; nothing
// follows from it by formula.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/source.h"

namespace shardmark::imports {

// The column that a heading names, whatever its case: "Batch size" is batch_size. A heading that names none
// is given back as it is.
std::string column_of(std::string_view heading);
bool is_column(std::string_view heading);
bool is_measured_column(const std::string& column);  // a time or rate: a number with decimals

struct TableCell {
  std::string column, text;
  std::string place;  // "t.csv:7: "
};

struct TableRow {
  int64_t line = 0;
  std::vector<TableCell> cells;  // those that are not empty
};

// UsageError with the place: a column or a value that is not accepted, a time or batch that is missing, two
// columns of one unit, or times and rates that contradict each other.
Contents read_table(const std::vector<TableRow>& rows);

}  // namespace shardmark::imports

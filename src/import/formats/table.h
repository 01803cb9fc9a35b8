// A table of training results that people write themselves, as CSV or YAML. Columns are a suite's axes by
// their keys (ranks, model, strategy, batch_size or global_batch, precision ...), and:
//     step_s, step_ms                time of a step
//     samples_per_s, tokens_per_s    rates of all ranks together
//     tokens_per_sample              length of a sequence, for models that this program does not know
//     nodes, seed, launch            rows with different `launch` are repeats, each of which counts
// A model, strategy or word that this program does not know is kept as it is written, such as 'GPT-3 (175B)';
// no formula applies to it then.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/source.h"

namespace shardmark::imports {

// The column that a heading names, in any case: "Batch size" gives batch_size. A heading that names no column
// is returned as it is.
std::string column_of(std::string_view heading);
bool is_column(std::string_view heading);
bool is_measured_column(const std::string& column);  // a time or rate, which may have decimals

struct TableCell {
  std::string column, text;
  std::string place;  // "t.csv:7: "
};

struct TableRow {
  int64_t line = 0;
  std::vector<TableCell> cells;  // without empty cells
};

// Throws UsageError with the place if a column or a value is not accepted, if a time or batch is missing, if
// two columns state the same quantity, or if times and rates contradict each other.
Contents read_table(const std::vector<TableRow>& rows);

}  // namespace shardmark::imports

// Programs as a study keeps them: the series "program", [row, kProgramColumns] (schema/fields.h says what
// each column is): what computes and what communicates.
#pragma once

#include "schema/record.h"
#include "strategies/program.h"

namespace shardmark::strategies {

inline constexpr int64_t kProgramColumns = 7;
Series to_series(const Program& program);
Program program_of(const Series& series);  // UsageError where a series is no program

}  // namespace shardmark::strategies

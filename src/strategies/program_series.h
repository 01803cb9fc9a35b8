// Programs as a study stores them: the series "program", [row, kProgramColumns], has a row for each
// instruction that computes and each call that starts or is waited for. schema/fields.h defines the columns.
#pragma once

#include "schema/record.h"
#include "strategies/program.h"

namespace shardmark::strategies {

inline constexpr int64_t kProgramColumns = 7;
Series to_series(const Program& program);
Program program_of(const Series& series);  // throws UsageError if the series is no program

}  // namespace shardmark::strategies

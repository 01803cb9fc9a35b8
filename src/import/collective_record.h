// A collective as other programs print it becomes a record.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schema/record.h"
#include "specs/collectives.h"

namespace shardmark::imports {

// bytes: as CollectivePoint has them, the larger of a rank's two sides. Bandwidths follow from the time, by
// the factors of specs/.
Record collective_record(const specs::CollectiveRow& row, int64_t ranks, int64_t bytes, double time_s);
// -1: nobody looked. Above 0 the outcome is `wrong`, for that reason.
void set_wrong(int64_t num_wrong, const std::string& reason, Record& record);
// A point of which nothing is known but what its source says: no sampling that was asked for, no seed.
Point unspecified_point(const std::string& workload, int64_t ranks);

// float32 for float, MPI_FLOAT ...; any other as it is written.
std::string element_type(std::string_view name);
// sum for MPI_SUM ...; any other as it is written.
std::string reduction_of(std::string_view name);

}  // namespace shardmark::imports

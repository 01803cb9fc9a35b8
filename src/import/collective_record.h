// Makes a record of a collective that another program has measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schema/record.h"
#include "specs/collectives.h"

namespace shardmark::imports {

// `bytes` is the size as CollectivePoint defines it: the larger of a rank's two sides. Bandwidths are
// computed from the time with the factors of specs/.
Record collective_record(const specs::CollectiveRow& row, int64_t ranks, int64_t bytes, double time_s);
// Sets the number of wrong elements; -1 means that nobody checked. If it is above 0, the outcome is `wrong`
// with this reason.
void set_wrong(int64_t num_wrong, const std::string& reason, Record& record);
// A configuration of which only the source's own facts are known: it has no sampling settings and no seed.
Point unspecified_point(const std::string& workload, int64_t ranks);

// Translates "float", "MPI_FLOAT" ... to "float32" ...; other names stay as they are written.
std::string element_type(std::string_view name);
// Translates "MPI_SUM" ... to "sum" ...; other names stay as they are written.
std::string reduction_of(std::string_view name);

}  // namespace shardmark::imports

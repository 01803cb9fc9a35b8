// What ranks measured, put together on rank 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "schema/record.h"

namespace shardmark {

// [rank][value] on rank 0, empty elsewhere; all ranks give equally many. Collective.
std::vector<std::vector<double>> gather_rows(const HostGroup& group, const std::vector<double>& values);

// Values begin .. begin + count of each row, as columns of a series.
Series columns_of(const std::string& name, const std::vector<std::vector<double>>& rows, int64_t begin,
                  int64_t count);

// They become further columns of the record's series.
void grow(Record& record, const std::vector<Series>& columns);

// Where the columns of a long run also go as they come, on rank 0.
using ColumnsSink = std::function<void(const std::vector<Series>& columns)>;

}  // namespace shardmark

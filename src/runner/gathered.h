// What ranks measured, put together on rank 0.
#pragma once

#include <string>
#include <vector>

#include "comm/host_group.h"
#include "schema/record.h"

namespace shardmark {

// [rank][value] on rank 0, empty elsewhere; all ranks give equally many. Collective.
std::vector<std::vector<double>> gather_rows(const HostGroup& group, const std::vector<double>& values);

// Values begin .. begin + count of each row become further columns of the record's series.
void append_columns(Record& record, const std::string& name, const std::vector<std::vector<double>>& rows,
                    int64_t begin, int64_t count);

}  // namespace shardmark

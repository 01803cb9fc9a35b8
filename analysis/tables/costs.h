// What training costs at a price per GPU-hour.
#pragma once

#include "analysis/frame/merged.h"
#include "analysis/table/columns.h"

namespace shardmark {

// None without a price above 0. Points that do not train one model together cost nothing that compares.
ColumnsOf<MergedPoint> cost_columns(const std::vector<MergedPoint>& points, double price_per_gpu_hour);

}  // namespace shardmark

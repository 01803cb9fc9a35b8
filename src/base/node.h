// This node, and this process's share of it, as the kernel reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardmark {

std::string host_name();
std::string line_of(const std::string& path);  // the first of a small file of the kernel; empty: none

std::optional<int64_t> node_memory_bytes();
std::optional<int64_t> available_memory_bytes();  // that no process holds, page cache included

// The lowest limit of this process's control group and of all groups above it. 0: no limit.
double granted_cores();  // of processor time
int64_t granted_memory_bytes();

}  // namespace shardmark

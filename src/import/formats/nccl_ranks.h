// The ranks that nccl-tests list, and their nodes and devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/lines.h"
#include "import/source.h"

namespace shardmark::imports {

// One rank as nccl-tests list it: "#  Rank  0 Group  0 Pid  16 on host device  0 [0000:19:00] NVIDIA H100".
// Versions before 2022 print no group.
struct NcclRank {
  int64_t rank = 0, group = 0;
  std::string host, device, bus;  // device: number within the process
  std::string name;               // of the device; "": unknown to the driver
  std::string place;              // "a.log:7: "
};

// Whether the line lists a rank. Also true for a line that is damaged or interrupted by another one.
bool lists_rank(const std::vector<std::string_view>& words);
// Throws UsageError that begins with `where` if the line is damaged.
NcclRank read_rank(const Line& line, const std::vector<std::string_view>& words, const std::string& where);

// The nodes and devices of all ranks.
struct NcclPlacement {
  // The host of each rank. Nodes that share a name get numbers: "localhost#2".
  std::vector<std::string> hosts;
  std::vector<std::string> devices;  // of each rank; empty: unknown
  int64_t nodes = 0;
  bool shares_devices = false;  // several ranks on one GPU
};

// per_listed is the number of ranks that each entry stands for. Throws UsageError if the rank numbers are not
// 0 to n-1, each once; if several groups ran at once; or if two ranks are on one device of one host name and
// no flag tells how many nodes have that name.
NcclPlacement nccl_placement(std::vector<NcclRank> listed, const Given& given, int64_t per_listed = 1);

}  // namespace shardmark::imports

// Which ranks nccl-tests list, and on which nodes and devices they were.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/lines.h"
#include "import/source.h"

namespace shardmark::imports {

// What nccl-tests list of a rank, "#  Rank  0 Group  0 Pid  16 on host device  0 [0000:19:00] NVIDIA H100",
// before 2022 without the group.
struct NcclRank {
  int64_t rank = 0, group = 0;
  std::string host, device, bus;  // device: its number, as the process sees it
  std::string name;               // of the device; "": the driver did not know it
  std::string place;              // "a.log:7: "
};

// Whether the line lists a rank; also a line that is damaged, or that another one interrupts.
bool lists_rank(const std::vector<std::string_view>& words);
// UsageError that begins with `where`: it is not whole.
NcclRank read_rank(const Line& line, const std::vector<std::string_view>& words, const std::string& where);

// Where all ranks were.
struct NcclPlacement {
  std::vector<std::string> hosts;    // of each rank; nodes that share a name get numbers: "localhost#2"
  std::vector<std::string> devices;  // the same; empty: not known
  int64_t nodes = 0;
  bool shares_devices = false;  // several ranks are on one GPU
};

// per_listed: ranks that each entry stands for. UsageError: their numbers are not 0 to n-1, each once,
// several groups ran at once, or two ranks are on one device of one host name, and no flag says how many
// nodes have that name.
NcclPlacement nccl_placement(std::vector<NcclRank> listed, const Given& given, int64_t per_listed = 1);

}  // namespace shardmark::imports

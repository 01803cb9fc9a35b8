// Small files of /proc and of control groups, version 2.
#include "base/node.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace shardmark {
namespace {

// "MemTotal:       24683264 kB" of /proc/meminfo, in bytes.
std::optional<int64_t> memory_info(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::atoll(line.c_str() + key.size() + 1) * 1024;
  return {};
}

// The same file of this process's control group and of all groups around it, innermost first.
std::vector<std::string> group_settings(const std::string& name) {
  std::vector<std::string> found;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    const std::filesystem::path root = "/sys/fs/cgroup";
    for (std::filesystem::path group = line.substr(4);; group = group.parent_path()) {
      std::ifstream file(root / group / name);
      if (std::string text; std::getline(file, text)) found.push_back(text);
      if (group.empty()) break;
    }
  }
  return found;
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::optional<int64_t> node_memory_bytes() { return memory_info("MemTotal"); }
std::optional<int64_t> available_memory_bytes() { return memory_info("MemAvailable"); }

double granted_cores() {
  double least = 0;
  for (const std::string& text : group_settings("cpu.max")) {  // "200000 100000", or "max 100000"
    double quota = 0, period = 0;
    if (std::istringstream(text) >> quota >> period && period > 0 && (least == 0 || quota / period < least))
      least = quota / period;
  }
  return least;
}

int64_t granted_memory_bytes() {
  int64_t least = 0;
  for (const std::string& text : group_settings("memory.max"))
    if (const int64_t limit = std::atoll(text.c_str()); limit > 0 && (least == 0 || limit < least))
      least = limit;
  return least;
}

}  // namespace shardmark

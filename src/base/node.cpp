// Parses the small text files of /proc and of control groups.
#include "base/node.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace shardmark {
namespace {

// Reads a line of /proc/meminfo such as "MemTotal:       24683264 kB" and returns bytes.
std::optional<int64_t> memory_info(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::atoll(line.c_str() + key.size() + 1) * 1024;
  return {};
}

namespace fs = std::filesystem;

// Folders of this process's control group and of all groups that contain it, innermost first: of cgroup
// version 2 ("0::/job" in /proc/self/cgroup) and of the given controller of version 1 ("4:cpu,cpuacct:/job").
std::vector<fs::path> control_groups(const std::string& controller) {
  std::vector<fs::path> found;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t begin = line.find(':') + 1, end = line.find(":/", begin);
    if (begin == 0 || end == std::string::npos) continue;
    const std::string controllers = "," + line.substr(begin, end - begin) + ",";
    const bool is_version_2 = controllers == ",,";
    if (!is_version_2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const fs::path mount = is_version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    for (fs::path group = line.substr(end + 2);; group = group.parent_path()) {
      found.push_back(mount / group);
      if (group.empty()) break;
    }
  }
  return found;
}

// The CPU quota of a group in cores; 0 if it has none.
double quota_of(const fs::path& group) {
  // Version 2 has one file, "200000 100000" or "max 100000"; version 1 has two.
  const std::string both = line_of(group / "cpu.max");
  std::istringstream text(
      both.empty() ? line_of(group / "cpu.cfs_quota_us") + " " + line_of(group / "cpu.cfs_period_us") : both);
  double quota = 0, period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int64_t> node_memory_bytes() { return memory_info("MemTotal"); }
std::optional<int64_t> available_memory_bytes() { return memory_info("MemAvailable"); }

std::map<int64_t, ProcessorTicks> processor_ticks(const std::string& stat) {
  std::map<int64_t, ProcessorTicks> found;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    // The columns are "cpu3 user nice system idle iowait irq softirq steal ..."; the time of guests is
    // already in user and nice.
    std::istringstream words(line);
    std::string name;
    uint64_t user = 0, nice = 0, system = 0, idle = 0, disk = 0, interrupts = 0, soft = 0, stolen = 0;
    if (!(words >> name >> user >> nice >> system >> idle >> disk >> interrupts >> soft >> stolen)) continue;
    if (!name.starts_with("cpu") || name.size() == 3) continue;
    const uint64_t busy = user + nice + system + interrupts + soft;
    found[std::atoll(name.c_str() + 3)] = {busy, stolen, busy + stolen + idle + disk};
  }
  return found;
}

int64_t involuntary_switches() {
  rusage use{};
  return getrusage(RUSAGE_SELF, &use) == 0 ? use.ru_nivcsw : 0;
}

double granted_cores() {
  double least = 0;
  for (const fs::path& group : control_groups("cpu"))
    if (const double quota = quota_of(group); quota > 0 && (least == 0 || quota < least)) least = quota;
  return least;
}

int64_t granted_memory_bytes() {
  // Version 1 writes a number near 2^63 for "no limit".
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  int64_t least = 0;
  for (const fs::path& group : control_groups("memory"))
    for (const char* name : {"memory.max", "memory.limit_in_bytes"})
      if (const int64_t limit = std::atoll(line_of(group / name).c_str());
          limit > 0 && limit < kNoLimit && (least == 0 || limit < least))
        least = limit;
  return least;
}

}  // namespace shardmark

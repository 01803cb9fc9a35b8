// Small files of the kernel, and what a try at locking a file says.
#include "machine/host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/node.h"
#include "schema/file.h"

namespace shardmark::machine {
namespace {

using doctor::kUnknown;

int64_t free_bytes(const std::string& path) {
  struct statvfs file_system {};
  if (path.empty() || statvfs(path.c_str(), &file_system) != 0) return kUnknown;
  return static_cast<int64_t>(file_system.f_bavail) * static_cast<int64_t>(file_system.f_frsize);
}

int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return kUnknown;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<int64_t>::max()
                                         : static_cast<int64_t>(limit.rlim_cur);
}

// The type of the file system that holds a path: of the longest mount point that leads to it.
std::string file_system_of(const std::string& path) {
  std::error_code error;
  const std::string whole = std::filesystem::weakly_canonical(path, error).string() + "/";
  std::ifstream mounts("/proc/self/mounts");
  std::string type;
  size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, name;
    words >> device >> point >> name;
    const std::string prefix = point == "/" ? point : point + "/";
    if (!whole.starts_with(prefix) || prefix.size() < longest) continue;
    longest = prefix.size();
    type = name;
  }
  return type;
}

// As HDF5 does it: flock on a file there. A directory that cannot be written to tells nothing: the study's
// own error says more.
std::string try_locking(const std::string& directory) {
  std::string name = directory + "/.shardmark-lock-XXXXXX";
  const File file(mkstemp(name.data()));
  if (!file) return "";
  unlink(name.c_str());
  return flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? "works" : std::strerror(errno);
}

bool has_infiniband() {
  std::error_code none;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", none);
  return !none && devices != std::filesystem::directory_iterator();
}

}  // namespace

std::string kernel_id() { return line_of("/proc/sys/kernel/random/boot_id"); }

doctor::HostFacts host_facts(const std::string& output) {
  doctor::HostFacts facts;
  facts.memory_bytes = node_memory_bytes().value_or(kUnknown);
  facts.free_bytes = available_memory_bytes().value_or(kUnknown);
  facts.limit_bytes = granted_memory_bytes();
  facts.shm_bytes = free_bytes("/dev/shm");
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.open_files = limit_of(RLIMIT_NOFILE);
  facts.infiniband = has_infiniband();
  facts.output = output;
  if (output.empty()) return facts;
  facts.disk_bytes = free_bytes(output);
  facts.file_system = file_system_of(output);
  facts.locking = try_locking(output);
  return facts;
}

}  // namespace shardmark::machine

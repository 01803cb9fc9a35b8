// Reads small files of the kernel, and tests file locking.
#include "doctor/machine/host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

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

// The type of the file system that holds a path, or its magic number. It is found by path, because in a
// container or a chroot the mount point may be missing from /proc/self/mounts. Source: linux/magic.h, and the
// file systems' own sources.
std::string file_system_of(const std::string& path) {
  static constexpr std::pair<uint32_t, const char*> kTypes[] = {
      {0xEF53, "ext4"},      {0x58465342, "xfs"},    {0x9123683E, "btrfs"}, {0x2FC12FC1, "zfs"},
      {0x6969, "nfs"},       {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},  {0x19830326, "beegfs"},
      {0x00C36400, "ceph"},  {0x01021994, "tmpfs"},  {0x858458F6, "ramfs"}, {0x794C7630, "overlay"},
      {0xFE534D42, "cifs"},  {0xFF534D42, "cifs"},   {0x65735546, "fuse"},  {0x73717368, "squashfs"},
      {0xAAD7AAEA, "panfs"}, {0x01021997, "9p"},     {0x20030528, "pvfs2"}, {0x6A656A63, "virtiofs"},
  };
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return "";
  const auto magic = static_cast<uint32_t>(info.f_type);
  for (const auto& [number, name] : kTypes)
    if (number == magic) return name;
  return fmt::format("{:#x}", magic);
}

// Tries what HDF5 does: flock on a file in the directory. If the directory cannot be written to, the result
// is empty; the study's own error will say more.
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

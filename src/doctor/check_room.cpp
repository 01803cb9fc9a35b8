// Checks space and limits: shared memory, disk, file locks, lockable memory, open files.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;

// NCCL's guide asks for 1 GiB in a container (docker run --shm-size=1g; "Troubleshooting, Shared Memory").
// Open MPI uses 4 MiB per rank (btl_vader_segment_size), and more for windows and large worlds.
int64_t needed_shm(const RankFacts& rank) {
  if (rank.local_ranks < 2) return 0;
  return rank.on_gpu() ? kGiB : 16 * kMiB * rank.local_ranks;
}

void check_memory(const World& world, Findings& findings) {
  Affected shm, scarce;
  int64_t needed = 0;
  for (const RankFacts& rank : world) {
    // A tenth may already be in use by our pages and MPI's segments.
    if (rank.node.shm_bytes != kUnknown && rank.node.shm_bytes < needed_shm(rank) / 10 * 9) {
      shm.add(rank, rank.node.shm_bytes);
      needed = std::max(needed, needed_shm(rank));
    }
    const int64_t limit = rank.node.limit_bytes > 0 ? std::min(rank.node.limit_bytes, rank.node.memory_bytes)
                                                    : rank.node.memory_bytes;
    // LibTorch and MPI take half a GiB per rank before any model does.
    if (limit != kUnknown && limit < kGiB / 2 * rank.local_ranks) scarce.add(rank, limit);
  }
  shm.report(
      findings, Severity::warning,
      fmt::format("{} free in /dev/shm of {}, {} recommended", format_bytes(static_cast<double>(shm.least())),
                  shm.hosts(), format_bytes(static_cast<double>(needed))),
      "docker run --shm-size=1g or --ipc=host; remove what crashed jobs left there; mount -o "
      "remount,size=50% "
      "/dev/shm");
  scarce.report(findings, Severity::warning,
                fmt::format("only {} of memory for the ranks of {}",
                            format_bytes(static_cast<double>(scarce.least())), scarce.hosts()),
                "start fewer ranks a node, or ask for more (sbatch --mem)");
}

void check_output(const World& world, Findings& findings) {
  for (const RankFacts& rank : world) {
    const HostFacts& node = rank.node;
    if (node.output.empty()) continue;
    Affected here;
    here.add(rank);
    if (node.disk_bytes != kUnknown && node.disk_bytes < kGiB / 4)
      here.report(findings, Severity::warning,
                  fmt::format("{} free where studies go ({} on {})",
                              format_bytes(static_cast<double>(node.disk_bytes)), node.output, rank.host),
                  "make room, or write elsewhere with -o; what is finished is kept either way",
                  /*is_of_job=*/true);
    const auto setting = rank.variables.find("HDF5_USE_FILE_LOCKING");
    const std::string value = setting == rank.variables.end() ? "" : setting->second;
    // shardmark asks HDF5 for no locks; this variable overrides that.
    const bool locks = value == "TRUE" || value == "1";
    const bool is_accepted = value == "FALSE" || value == "0" || value == "BEST_EFFORT";
    if (!node.locking.empty() && node.locking != "works" && !is_accepted)
      here.report(
          findings, locks ? Severity::error : Severity::note,
          fmt::format("files in {} ({}) cannot be locked ({}): {}", node.output, node.file_system,
                      node.locking,
                      locks ? "HDF5_USE_FILE_LOCKING=" + value + " requires locks"
                            : "nothing prevents two runs from writing the same study"),
          "export HDF5_USE_FILE_LOCKING=FALSE (readers such as h5py need it, too), or write to another "
          "file system",
          /*is_of_job=*/true);
  }
}

void check_limits(const World& world, Findings& findings) {
  Affected unlocked, few_files;
  for (const RankFacts& rank : world) {
    if (rank.node.infiniband && rank.node.locked_bytes != kUnknown && rank.node.locked_bytes < kGiB)
      unlocked.add(rank, rank.node.locked_bytes);
    // A rank needs a socket for each other rank if there is no better transport, and some files.
    if (rank.node.open_files != kUnknown && rank.node.open_files < rank.world_ranks + 256)
      few_files.add(rank, rank.node.open_files);
  }
  unlocked.report(
      findings, Severity::warning,
      fmt::format("only {} may be locked on {}: InfiniBand pins its buffers",
                  format_bytes(static_cast<double>(unlocked.least())), unlocked.hosts()),
      "ulimit -l unlimited (limits.conf; LimitMEMLOCK=infinity of slurmd; docker run --ulimit memlock=-1)");
  few_files.report(findings, Severity::warning,
                   fmt::format("only {} files may be open per rank, with {} ranks", few_files.least(),
                               world.front().world_ranks),
                   "ulimit -n 65536 (limits.conf; LimitNOFILE of slurmd)");
}

}  // namespace

void check_room(const World& world, Findings& findings) {
  check_memory(world, findings);
  check_output(world, findings);
  check_limits(world, findings);
}

}  // namespace shardmark::doctor

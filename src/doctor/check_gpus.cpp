// Checks GPUs: shared, hidden, of different kinds, slower than the others, or faulty.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

std::vector<const RankFacts*> on_gpus(const World& world) {
  std::vector<const RankFacts*> ranks;
  for (const RankFacts& rank : world)
    if (rank.on_gpu()) ranks.push_back(&rank);
  return ranks;
}

// In NCCL, two processes can share a GPU if each claims to be another host. So if NCCL_HOSTID differs for all
// ranks on a GPU, this is a functional test and not a mistake.
void check_shared(const World& world, Findings& findings) {
  std::map<std::string, RankGroup> by_gpu;
  for (const RankFacts* rank : on_gpus(world)) by_gpu[rank->gpu.uuid].push_back(rank);
  Affected shared, emulated;
  std::string which;
  for (const auto& [uuid, ranks] : by_gpu) {
    if (ranks.size() < 2) continue;
    std::set<std::string> hosts;
    for (const RankFacts* rank : ranks)
      if (const auto id = rank->variables.find("NCCL_HOSTID"); id != rank->variables.end())
        hosts.insert(id->second);
    (hosts.size() == ranks.size() ? emulated : shared).add(ranks, static_cast<int64_t>(ranks.size()));
    which = ranks.front()->gpu.pci + " of " + ranks.front()->host;
  }
  shared.report(
      findings, Severity::error, fmt::format("{} ranks use one GPU ({})", shared.most(), which),
      "start one rank per GPU (mpirun --map-by ppr:GPUS:node, srun --ntasks-per-node=GPUS), or --device cpu",
      /*is_of_job=*/true);
  emulated.report(findings, Severity::warning,
                  fmt::format("{} ranks share one GPU ({}) by NCCL_HOSTID", emulated.most(), which),
                  "use this for functional tests only: its timings are meaningless");
}

void check_kinds(const World& world, Findings& findings) {
  const auto gpus = on_gpus(world);
  if (gpus.empty()) return;
  if (gpus.size() < world.size()) {
    Affected without;
    for (const RankFacts& rank : world)
      if (!rank.on_gpu()) without.add(rank);
    without.report(
        findings, Severity::error,
        fmt::format("no GPU on {}, while {} other ranks have one", without.hosts(), gpus.size()),
        "leave these nodes out (srun --exclude, mpirun --host), or run all ranks with --device cpu");
  }
  std::map<std::string, int64_t> kinds;
  for (const RankFacts* rank : gpus) ++kinds[rank->gpu.name];
  if (kinds.size() < 2) return;
  // The kind that most ranks have is the usual one. With a tie it is the first in alphabetical order.
  const auto usual = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->first;
  Affected other;
  std::set<std::string> names;
  for (const RankFacts* rank : gpus) {
    if (rank->gpu.name == usual) continue;
    other.add(*rank);
    names.insert(rank->gpu.name);
  }
  other.report(findings, Severity::warning,
               fmt::format("{} on {}, {} elsewhere: the slowest sets the pace", fmt::join(names, ", "),
                           other.hosts(), usual),
               "ask for one kind (sbatch --constraint, --gres=gpu:TYPE:N)");
}

// NCCL uses NVLink to another GPU of the node only if the process may see that GPU.
void check_visible(const World& world, Findings& findings) {
  Affected blind;
  int64_t in_node = 0;
  for (const auto& [name, ranks] : nodes_of(world)) {
    // A container or control group may hide the other GPUs from NVML as well.
    std::set<std::string> used;
    for (const RankFacts* rank : ranks)
      if (rank->on_gpu()) used.insert(rank->gpu.uuid);
    for (const RankFacts* rank : ranks) {
      const GpuFacts& gpu = rank->gpu;
      const auto there = std::max(gpu.in_node, static_cast<int64_t>(used.size()));
      if (rank->on_gpu() && gpu.visible < std::min(there, rank->local_ranks)) {
        blind.add(*rank, gpu.visible);
        in_node = there;
      }
    }
  }
  blind.report(
      findings, Severity::warning,
      fmt::format("each rank sees {} of {} GPUs of its node: where a control group or container hides the "
                  "others, peer access is gone, and NCCL falls from NVLink to PCIe or sockets",
                  blind.least(), in_node),
      "srun --gpu-bind=none and --gpus-per-node instead of --gpus-per-task; unset CUDA_VISIBLE_DEVICES");
}

// Finds GPUs that are visible to each other but can exchange data only through host memory.
void check_peers(const World& world, Findings& findings) {
  Affected apart;
  int64_t others = 0;
  for (const RankFacts* rank : on_gpus(world)) {
    if (rank->gpu.unreachable == 0) continue;
    apart.add(*rank, rank->gpu.unreachable);
    others = rank->gpu.visible - 1;
  }
  apart.report(findings, Severity::warning,
               fmt::format("a GPU has no peer access to up to {} of {} others of its node ({}): NCCL goes "
                           "through the host's memory",
                           apart.most(), others, apart.hosts()),
               "nvidia-smi topo -p2p r shows the pairs; PCIe's access control (ACS), an IOMMU or a virtual "
               "machine takes it away");
}

// Compares a number that should be the same on all GPUs with the same name.
void check_alike(const World& world, Findings& findings, const char* what, int64_t GpuFacts::*number,
                 const std::string& fix) {
  std::map<std::string, std::map<int64_t, RankGroup>> by_name;
  for (const RankFacts* rank : on_gpus(world))
    if (rank->gpu.*number != kUnknown) by_name[rank->gpu.name][rank->gpu.*number].push_back(rank);
  for (const auto& [name, by_value] : by_name) {
    if (by_value.size() < 2) continue;
    // The value of most ranks is the usual one; with a tie, the lowest.
    const auto usual = std::max_element(by_value.begin(), by_value.end(), [](const auto& a, const auto& b) {
                         return a.second.size() < b.second.size();
                       })->first;
    Affected other;
    for (const auto& [value, ranks] : by_value)
      if (value != usual) other.add(ranks, value);
    const auto values = other.least() == other.most() ? std::to_string(other.least())
                                                      : fmt::format("{} to {}", other.least(), other.most());
    other.report(findings, Severity::warning,
                 fmt::format("{} is {} on {}, {} on other GPUs of the same name ({})", what, values,
                             other.hosts(), usual, name),
                 fix);
  }
}

void check_health(const World& world, Findings& findings) {
  // The reasons in NVML's clocks-event mask that mean trouble: hardware slowdown, software and hardware
  // thermal slowdown, power brake. Source: nvml.h, nvmlClocksEventReasons.
  constexpr int64_t kTrouble = 0x8 | 0x20 | 0x40 | 0x80, kHot = 0x20 | 0x40;
  Affected hot, slowed, capped, narrow, resting, ill, prohibited, sliced, taken;
  // The widest link among GPUs of the same name. When all are idle, all may use fewer lanes.
  std::map<std::string, int64_t> widest;
  for (const RankFacts* rank : on_gpus(world))
    widest[rank->gpu.name] = std::max(widest[rank->gpu.name], rank->gpu.pcie_width);
  for (const RankFacts* rank : on_gpus(world)) {
    const GpuFacts& gpu = rank->gpu;
    if ((gpu.throttle & kTrouble) != 0) ((gpu.throttle & kHot) != 0 ? hot : slowed).add(*rank, gpu.clock_mhz);
    if (gpu.power_cap_w != kUnknown && gpu.power_cap_w < gpu.default_cap_w)
      capped.add(*rank, gpu.power_cap_w);
    if (gpu.pcie_width != kUnknown && gpu.pcie_width < gpu.most_pcie_width)
      (gpu.pcie_width < widest[gpu.name] ? narrow : resting).add(*rank, gpu.pcie_width);
    if (gpu.uncorrected_errors > 0) ill.add(*rank, gpu.uncorrected_errors);
    if (gpu.compute_mode == 2) prohibited.add(*rank);
    if (gpu.mig) sliced.add(*rank);
    if (gpu.foreign_bytes > int64_t{2} << 30) taken.add(*rank, gpu.foreign_bytes);
  }
  const auto on = [](const char* text, const Affected& who) {
    return fmt::format("{} on {}", text, who.hosts());
  };
  prohibited.report(findings, Severity::error, on("GPUs are in compute mode prohibited", prohibited),
                    "nvidia-smi -c 0");
  hot.report(findings, Severity::warning,
             on("GPUs are throttled by temperature", hot) + fmt::format(", to {} MHz", hot.least()),
             "look at fans, air flow and nvidia-smi -q -d TEMPERATURE, or leave the node out");
  slowed.report(
      findings, Severity::warning,
      on("GPUs are throttled by their hardware", slowed) + fmt::format(", to {} MHz", slowed.least()),
      "look at the power supply and nvidia-smi -q -d PERFORMANCE, or leave the node out");
  capped.report(findings, Severity::warning,
                on("power is capped below the default", capped) + fmt::format(", at {} W", capped.least()),
                "sudo nvidia-smi -pl DEFAULT, unless the cap is meant");
  narrow.report(findings, Severity::warning,
                on("PCIe links are narrower than those of other GPUs of the same name", narrow) +
                    fmt::format(", {} lanes", narrow.least()),
                "reseat the card or riser, or leave the node out");
  resting.report(
      findings, Severity::note,
      on("PCIe links use fewer lanes than they have", resting) + fmt::format(", {} lanes", resting.least()),
      "idle GPUs may; if they also do under load, reseat the card or riser");
  ill.report(findings, Severity::warning,
             on("uncorrected memory errors (ECC)", ill) + fmt::format(", {} on a GPU", ill.most()),
             "reset the GPU (nvidia-smi -r) or have it replaced; see nvidia-smi -q -d ECC");
  sliced.report(findings, Severity::note, on("GPUs are partitioned (MIG)", sliced),
                "sudo nvidia-smi -mig 0 for whole ones");
  taken.report(findings, Severity::warning,
               on("GPU memory is in use by other processes", taken) + ", up to " +
                   format_bytes(static_cast<double>(taken.most())),
               "nvidia-smi lists these processes");
}

}  // namespace

void check_gpus(const World& world, Findings& findings) {
  check_shared(world, findings);
  check_kinds(world, findings);
  check_visible(world, findings);
  check_peers(world, findings);
  check_alike(world, findings, "the highest clock (MHz)", &GpuFacts::most_clock_mhz,
              "leave these nodes out for comparable results");
  check_alike(world, findings, "the application clock (MHz)", &GpuFacts::set_clock_mhz,
              "sudo nvidia-smi -rac resets it");
  check_alike(world, findings, "the power cap (W)", &GpuFacts::power_cap_w,
              "sudo nvidia-smi -pl WATTS sets it");
  check_health(world, findings);
}

}  // namespace shardmark::doctor

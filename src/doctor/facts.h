// What a rank knows about itself, its device and its node. The facts are gathered once, judged by checks.h,
// and stored with the study.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardmark::doctor {

constexpr int64_t kUnknown = -1;  // stands for a number that could not be read

struct CpuFacts {
  std::string name;  // model of the processor
  // Logical processors that this rank may run on: "0-15,32-47".
  std::string allowed;
  std::string numa;          // NUMA nodes of these
  int64_t cores = kUnknown;  // physical cores among these
  // Physical cores of the node that this job may use.
  int64_t node_cores = kUnknown;
  int64_t node_numa = kUnknown;     // NUMA nodes of the node
  int64_t threads = 1;              // threads with which the rank computes
  double quota = 0;                 // cores granted by the control group; 0: no limit
  std::string bound_by = "nobody";  // nobody, launcher, shardmark
};

struct GpuFacts {  // name empty: the rank computes on the CPU
  std::string name;
  std::string uuid;
  std::string pci;          // bus id: "0000:17:00.0"
  int64_t numa = kUnknown;  // NUMA node that it is attached to
  int64_t visible = 0;      // GPUs that this process may use
  int64_t unreachable = 0;  // visible GPUs without peer access to this one
  // Why CUDA shows no GPU: "cudaErrorNoDevice: no CUDA-capable ...".
  std::string cuda_error;
  int64_t in_node = kUnknown;  // GPUs that the driver shows on the node
  // Name of the oldest of these, if this rank has no GPU.
  std::string name_in_node;
  // Compute capability, 90 for 9.0, of the GPU or of that oldest one.
  int64_t capability = kUnknown;
  // NVIDIA compute cards on the PCI bus, whether or not a driver shows them.
  int64_t on_bus = 0;
  int64_t screens_on_bus = 0;         // NVIDIA cards that may have a screen
  int64_t foreign_bytes = kUnknown;   // memory in use before this rank allocated any
  int64_t clock_mhz = kUnknown;       // clock of the multiprocessors, now
  int64_t most_clock_mhz = kUnknown;  // the highest that the device supports
  int64_t set_clock_mhz = kUnknown;   // what it is set to (application clock)
  int64_t power_cap_w = kUnknown;
  int64_t default_cap_w = kUnknown;
  int64_t throttle = 0;                // bits of NVML's reasons, now
  int64_t pcie_width = kUnknown;       // PCIe lanes in use
  int64_t most_pcie_width = kUnknown;  // lanes that both device and slot have
  int64_t compute_mode = 0;            // NVML: 0 default, 1 and 3 exclusive, 2 prohibited
  int64_t uncorrected_errors = 0;      // memory errors since the driver was loaded
  bool mig = false;
};

struct VersionFacts {
  std::string shardmark, torch, mpi, nccl, nccl_built, cuda, cudnn, cublas, driver, hdf5,
      kernel;  // empty: not installed
};

struct HostFacts {
  int64_t memory_bytes = kUnknown;
  int64_t free_bytes = kUnknown;
  int64_t limit_bytes = 0;        // limit of the control group; 0: none
  int64_t shm_bytes = kUnknown;   // free in /dev/shm
  std::string output;             // directory of studies; empty if the rank writes none
  int64_t disk_bytes = kUnknown;  // free there
  std::string file_system;        // type: "ext4", "nfs"
  // Locking of files there: "works", or the error of trying.
  std::string locking;
  // What may be locked (ulimit -l); INT64_MAX means no limit.
  int64_t locked_bytes = kUnknown;
  int64_t open_files = kUnknown;  // ulimit -n
  bool infiniband = false;
};

// The share of time, 0 to 1, for which a logical processor was busy while all ranks of the node slept.
struct ProcessorUse {
  int64_t processor = 0;
  double busy = 0;    // ran something, for anybody
  double stolen = 0;  // the hypervisor ran another virtual machine
};

struct LoadFacts {
  double average = kUnknown;             // the node's load average of the last minute
  std::vector<ProcessorUse> processors;  // measured by the node's first rank; empty: unknown
  double own = 0;                        // processors that this rank itself kept busy meanwhile
};

struct RankFacts {
  std::string host;
  // The boot id of the running kernel, which is the same for all containers on it.
  std::string machine;
  int64_t pid = 0;
  int64_t rank = 0, world_ranks = 1;        // as MPI sees them
  int64_t promised_ranks = 0;               // from the launcher's variables; 0: they say nothing
  int64_t local_rank = 0, local_ranks = 1;  // among the ranks that share memory, as MPI sees it
  bool binding_refused = false;             // --bind none
  bool gpus_refused = false;                // --device cpu
  bool gpus_wanted = false;                 // --device cuda
  CpuFacts cpu;
  GpuFacts gpu;
  VersionFacts versions;
  HostFacts node;
  LoadFacts load;
  std::map<std::string, std::string> variables;  // those of kVariables that are set

  bool on_gpu() const { return !gpu.name.empty(); }
};

// The environment variables that checks look at.
inline constexpr const char* kVariables[] = {
    "OMPI_MCA_btl",          "OMPI_MCA_pml",         "UCX_TLS",
    "HDF5_USE_FILE_LOCKING", "NCCL_HOSTID",          "NCCL_SHM_DISABLE",
    "NCCL_P2P_DISABLE",      "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuFacts, name, allowed, numa, cores, node_cores, node_numa, threads,
                                   quota, bound_by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, name, uuid, pci, numa, visible, unreachable, cuda_error, in_node,
                                   name_in_node, capability, on_bus, screens_on_bus, foreign_bytes, clock_mhz,
                                   most_clock_mhz, set_clock_mhz, power_cap_w, default_cap_w, throttle,
                                   pcie_width, most_pcie_width, compute_mode, uncorrected_errors, mig)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VersionFacts, shardmark, torch, mpi, nccl, nccl_built, cuda, cudnn, cublas,
                                   driver, hdf5, kernel)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, memory_bytes, free_bytes, limit_bytes, shm_bytes, output,
                                   disk_bytes, file_system, locking, locked_bytes, open_files, infiniband)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessorUse, processor, busy, stolen)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LoadFacts, average, processors, own)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, host, machine, pid, rank, world_ranks, promised_ranks,
                                   local_rank, local_ranks, binding_refused, gpus_refused, gpus_wanted, cpu,
                                   gpu, versions, node, load, variables)

}  // namespace shardmark::doctor

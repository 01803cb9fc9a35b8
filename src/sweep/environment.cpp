// Host names, devices, versions, and an allow-listed set of variables: never the whole environment.
#include "sweep/environment.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/revision.h"
#include "base/stats.h"
#include "device/device.h"
#include "doctor/machine/versions.h"
#include "sweep/workloads/reference.h"

extern char** environ;

namespace shardmark {
namespace {

constexpr std::string_view kAllowed[] = {"OMP_",
                                         "MKL_",
                                         "NCCL_",
                                         "CUDA_",
                                         "CUBLAS_",
                                         "CUDNN_",
                                         "NVIDIA_TF32_OVERRIDE",
                                         "PYTORCH_",
                                         "TORCH_",
                                         "OMPI_MCA_",
                                         "UCX_",
                                         "SLURM_JOB_ID",
                                         "SLURM_JOB_NODELIST",
                                         "SLURM_NNODES",
                                         "SLURM_NTASKS",
                                         "SLURM_RESTART_COUNT",
                                         "HDF5_USE_FILE_LOCKING"};

// What mpirun tells its own processes: other values in every launch, and nothing that a user chose.
constexpr std::string_view kOfTheLauncher[] = {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_initial_wdir"};

bool is_kept(const std::string& entry) {
  const auto begins = [&](std::string_view prefix) { return entry.starts_with(prefix); };
  return std::any_of(std::begin(kAllowed), std::end(kAllowed), begins) &&
         std::none_of(std::begin(kOfTheLauncher), std::end(kOfTheLauncher), begins);
}

nlohmann::ordered_json allowed_variables() {
  auto variables = nlohmann::ordered_json::object();
  std::set<std::string> sorted;
  for (char** entry = environ; *entry != nullptr; ++entry) sorted.insert(*entry);
  for (const auto& entry : sorted)
    if (is_kept(entry)) variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  return variables;
}

nlohmann::ordered_json versions() {
  const doctor::VersionFacts found = machine::versions();
  return {{"torch", found.torch},
          {"mpi", found.mpi},
          {"nccl", found.nccl},
          {"cuda", found.cuda},
          {"cudnn", found.cudnn},
          {"cublas", found.cublas},
          {"compiler", "g++ " __VERSION__},
          {"kernel", found.kernel}};
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Environment describe_environment(const HostGroup& world, at::Device device, const Resources& resources) {
  Environment environment;
  environment.rank_nodes = world.gather(host_name());
  environment.devices = world.gather(device_name(device));
  std::set<std::string> seen;
  for (const auto& node : environment.rank_nodes)
    if (seen.insert(node).second) environment.nodes.push_back(node);
  environment.world_ranks = world.size();
  environment.threads_per_rank = resources.threads_per_rank;
  environment.started = utc_now();
  environment.revision = revision();
  *environment.versions = versions();
  *environment.variables = allowed_variables();
  *environment.facts = {{"cores_per_node", resources.num_cores},
                        {"ranks_per_node", resources.local_ranks},
                        {"communication_thread", resources.communication() == MovedBy::thread},
                        {"device_memory_bytes", device_memory_bytes(device)},
                        {"peak_flops", resources.peak_flops},
                        {"datasheet_flops", resources.datasheet_flops}};
  return environment;
}

Resources describe_resources(const HostGroup& world, int local_ranks, at::Device device,
                             const std::vector<std::string>& precisions) {
  Resources resources;
  resources.local_ranks = local_ranks;
  resources.threads_per_rank = at::get_num_threads();
  // A rank bound to some cores has those for itself; otherwise the node's cores are everybody's.
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int mine = num_cores();
  resources.num_cores = mine < online ? std::min(online, mine * local_ranks) : online;
  for (const auto& precision : precisions) {
    world.barrier();
    const double own = measure_peak_flops(device, precision);
    const auto all = world.gather(std::vector<double>{own});
    const double typical = world.rank() == 0 ? median(all) : 0;
    resources.peak_flops[precision] = world.max(typical);
    const double datasheet = datasheet_peak_flops(device_name(device), precision);
    if (datasheet == datasheet) resources.datasheet_flops[precision] = datasheet;  // a NaN: unknown device
  }
  return resources;
}

}  // namespace shardmark

// Reads the cores, memory and GPUs of this node from the system.
#include "launch/machine.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/node.h"
#include "base/visible_gpus.h"
#include "launch/process.h"

namespace shardmark {
namespace {

constexpr const char* kProcessors = "/sys/devices/system/cpu";

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Counts physical cores. Hyper-threads of a core have the same list of siblings, so different lists are
// counted. 0 if the system does not provide them.
int64_t count_cores(const std::vector<std::string>& processors) {
  std::set<std::string> cores;
  for (const std::string& processor : processors) {
    const std::string siblings = first_word(processor + "/topology/thread_siblings_list");
    if (!siblings.empty()) cores.insert(siblings);
  }
  return static_cast<int64_t>(cores.size());
}

int64_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return sysconf(_SC_NPROCESSORS_ONLN);
  std::vector<std::string> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) allowed.push_back(kProcessors + ("/cpu" + std::to_string(cpu)));
  const int64_t cores = count_cores(allowed);
  return cores == 0 ? CPU_COUNT(&set) : cores;
}

// The processor time that we are granted (by cgroups), in whole cores.
int64_t quota() {
  const double cores = granted_cores();
  return cores == 0 ? INT64_MAX : std::max<int64_t>(static_cast<int64_t>(cores), 1);
}

// A cgroup may grant less than the node has free.
int64_t free_memory() {
  const int64_t free_bytes = available_memory_bytes().value_or(INT64_MAX), granted = granted_memory_bytes();
  return granted == 0 ? free_bytes : std::min(free_bytes, granted);
}

// The number of GPUs that CUDA shows to the processes that we start.
int64_t visible_gpus() {
  const std::string all = output_of({"nvidia-smi", "-L"});
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? count_gpus(all) : count_visible_gpus(all, visible);
}

}  // namespace

Machine read_machine() {
  Machine machine;
  machine.num_gpus = visible_gpus();
  machine.num_cores = std::min(allowed_cores(), quota());
  machine.free_bytes = free_memory();
  machine.is_root = geteuid() == 0;
  machine.has_open_mpi = output_of({"mpirun", "--version"}).find("Open MPI") != std::string::npos;
  return machine;
}

}  // namespace shardmark

// Cores, memory and GPUs of this node.
#include "launch/machine.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "launch/process.h"

namespace shardmark {
namespace {

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

int64_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return sysconf(_SC_NPROCESSORS_ONLN);
  return CPU_COUNT(&set);
}

// Hyper-threads share a core: cores are counted by the lists of siblings that differ.
int64_t physical_cores() {
  std::set<std::string> cores;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/cpu", ignored)) {
    const std::string siblings = first_word(entry.path() / "topology/thread_siblings_list");
    if (!siblings.empty()) cores.insert(siblings);
  }
  return cores.empty() ? allowed_cpus() : static_cast<int64_t>(cores.size());
}

// A container's share of the processor time, in cores: "max 100000" or "150000 100000".
int64_t quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double time = 0, period = 0;
  if (!(file >> time >> period) || period <= 0) return INT64_MAX;
  return std::max<int64_t>(static_cast<int64_t>(time / period), 1);
}

int64_t free_memory() {
  int64_t free_bytes = INT64_MAX, kib = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (std::istringstream(line.substr(line.find(':') + 1)) >> kib; line.starts_with("MemAvailable"))
      free_bytes = kib * 1024;
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  if (int64_t bytes = 0; limit >> bytes) free_bytes = std::min(free_bytes, bytes);
  return free_bytes;
}

int64_t count_lines(const std::string& text, const std::string& beginning) {
  std::istringstream lines(text);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with(beginning);
  return count;
}

}  // namespace

std::string output_of(const std::vector<std::string>& arguments) {
  std::string output;
  std::vector<std::string> limited = {"timeout", "10"};  // a driver may hang
  limited.insert(limited.end(), arguments.begin(), arguments.end());
  const int status = run_process(limited, {}, [&](const std::string& line) { output += line + "\n"; });
  return status == 0 ? output : "";
}

Machine read_machine() {
  Machine machine;
  machine.num_gpus = count_lines(output_of({"nvidia-smi", "-L"}), "GPU");
  machine.num_physical = physical_cores();
  machine.num_cores = std::min({machine.num_physical, allowed_cpus(), quota()});
  machine.free_bytes = free_memory();
  machine.is_root = geteuid() == 0;
  machine.has_open_mpi = output_of({"mpirun", "--version"}).find("Open MPI") != std::string::npos;
  return machine;
}

}  // namespace shardmark

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

#include "base/node.h"
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

// Whole cores of processor time that we are granted.
int64_t quota() {
  const double cores = granted_cores();
  return cores == 0 ? INT64_MAX : std::max<int64_t>(static_cast<int64_t>(cores), 1);
}

int64_t free_memory() {
  const int64_t free_bytes = available_memory_bytes().value_or(INT64_MAX), granted = granted_memory_bytes();
  return granted == 0 ? free_bytes : std::min(free_bytes, granted);
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

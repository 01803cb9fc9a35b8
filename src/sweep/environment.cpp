// Collects host names, devices, versions, and environment variables from an allow list, never all of them.
#include "sweep/environment.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/revision.h"
#include "base/stats.h"
#include "base/utc.h"
#include "device/device.h"
#include "doctor/machine/versions.h"
#include "launch/told.h"
#include "schema/settings.h"
#include "sweep/workloads/reference.h"

extern char** environ;

namespace shardmark {
namespace {

nlohmann::ordered_json allowed_variables() {
  auto variables = nlohmann::ordered_json::object();
  std::set<std::string> sorted;
  for (char** entry = environ; *entry != nullptr; ++entry) sorted.insert(*entry);
  for (const auto& entry : sorted) {
    const std::string name = entry.substr(0, entry.find('='));
    if (is_kept_variable(name)) variables[name] = entry.substr(std::min(name.size() + 1, entry.size()));
  }
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

namespace {

// The time that the launcher took is the start of this process less the moment at which launch started the
// launcher. That moment is from the clock of launch's node. If the clocks of two nodes differ so much that
// the result is negative, it says nothing.
StartTimes start_of(const HostGroup& world, const MpiSession& session) {
  const std::vector<double> slowest = world.max(std::vector<double>{session.program_s(), session.init_s()});
  StartTimes start{.program_s = slowest[0], .mpi_s = slowest[1]};
  const char* const launched = std::getenv(kLaunchedVariable);
  const double launched_s = launched == nullptr ? 0 : std::atof(launched);
  const double took_s = since_1970_s() - process_age_s() - launched_s;
  if (launched_s > 0 && took_s > 0) start.launcher_s = took_s;
  return start;
}

}  // namespace

Resources describe_resources(const HostGroup& world, const MpiSession& session, at::Device device,
                             const std::vector<std::string>& precisions) {
  Resources resources;
  const int local_ranks = session.local_size();
  resources.local_ranks = local_ranks;
  resources.start = start_of(world, session);
  resources.threads_per_rank = at::get_num_threads();
  resources.is_first_on_node = world.first_rank_on_node() == world.rank();
  // If ranks are bound to cores, each has its own; otherwise they share all cores of the node.
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int mine = num_cores();
  resources.num_cores = mine < online ? std::min(online, mine * local_ranks) : online;
  for (const auto& precision : precisions) {
    world.barrier();
    // All ranks measure at the same time, as they also compute at the same time in training. Ranks agree on
    // a precision that one of the devices lacks, because what follows is collective.
    const double own = measure_peak_flops(device, precision);
    if (world.max(static_cast<int64_t>(std::isnan(own))) != 0) continue;  // a device has no such products
    const auto all = world.gather(std::vector<double>{own});
    const double typical = world.rank() == 0 ? median(all) : 0;
    resources.peak_flops[precision] = world.max(typical);
    const double datasheet = datasheet_peak_flops(device_name(device), precision);
    // The data sheet's peak is NaN for an unknown device.
    if (datasheet == datasheet) resources.datasheet_flops[precision] = datasheet;
  }
  return resources;
}

}  // namespace shardmark

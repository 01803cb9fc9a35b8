// Assigns cores by NUMA node, and within one in order.
#include "doctor/binding.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace shardmark::doctor {
namespace {

using Cores = std::vector<Core>;
using Homes = std::map<int, Cores>;  // NUMA node -> its cores

// Groups the cores by NUMA node, reduced to the processors that ranks may use.
Homes homes_of(Cores cores, const Numbers& allowed) {
  Homes homes;
  for (Core& core : cores) {
    Numbers usable;
    std::set_intersection(core.cpus.begin(), core.cpus.end(), allowed.begin(), allowed.end(),
                          std::back_inserter(usable));
    if (!usable.empty()) homes[core.numa].push_back({core.numa, std::move(usable)});
  }
  return homes;
}

size_t num_cores(const Homes& homes) {
  size_t num = 0;
  for (const auto& [numa, cores] : homes) num += cores.size();
  return num;
}

void take(const Cores& cores, size_t first, size_t count, Numbers& cpus) {
  for (size_t i = first; i < first + count; ++i)
    cpus.insert(cpus.end(), cores[i].cpus.begin(), cores[i].cpus.end());
  std::sort(cpus.begin(), cpus.end());
}

// Takes the cores of each rank from its own NUMA node (its home). All ranks get as many cores as fit in the
// fullest home. Returns nothing if a home has too few cores.
std::optional<std::vector<Numbers>> share(const Homes& homes, const std::vector<int>& home_of) {
  std::map<int, size_t> tenants;
  for (int home : home_of) ++tenants[home];
  size_t each = num_cores(homes);
  for (const auto& [home, num] : tenants) {
    if (!homes.contains(home)) return {};
    each = std::min(each, homes.at(home).size() / num);
  }
  if (each == 0) return {};
  std::vector<Numbers> cpus(home_of.size());
  std::map<int, size_t> seated;
  for (size_t rank = 0; rank < home_of.size(); ++rank)
    take(homes.at(home_of[rank]), each * seated[home_of[rank]]++, each, cpus[rank]);
  return cpus;
}

// For fewer ranks than NUMA nodes: gives each rank whole NUMA nodes.
std::vector<Numbers> whole_homes(const Homes& homes, size_t num_ranks) {
  std::vector<Numbers> cpus(num_ranks);
  size_t i = 0;
  for (const auto& [numa, cores] : homes) take(cores, 0, cores.size(), cpus[i++ * num_ranks / homes.size()]);
  return cpus;
}

// Distributes the ranks in order over the NUMA nodes, as evenly as their sizes allow. One core per rank
// always fits.
std::vector<Numbers> spread(const Homes& homes, size_t num_ranks) {
  for (size_t each = num_cores(homes) / num_ranks; each > 0; --each) {
    size_t places = 0;
    for (const auto& [numa, cores] : homes) places += cores.size() / each;
    if (places < num_ranks) continue;
    std::vector<Numbers> cpus(num_ranks);
    // A place is room for `each` cores in one NUMA node. There may be more places than ranks, so each NUMA
    // node gets as large a part of the ranks as it has of the places.
    // `passed` counts the places in the NUMA nodes so far; the same share of the ranks has been placed.
    size_t rank = 0, passed = 0;
    for (const auto& [numa, cores] : homes) {
      passed += cores.size() / each;
      const size_t until = (passed * num_ranks + places - 1) / places;
      for (size_t first = 0; rank < until && first + each <= cores.size(); first += each)
        take(cores, first, each, cpus[rank++]);
    }
    return cpus;
  }
  return {};
}

bool differ(const std::vector<Seat>& seats) {
  return std::any_of(seats.begin(), seats.end(),
                     [&](const Seat& seat) { return seat.allowed != seats.front().allowed; });
}

}  // namespace

// The cores near each rank's GPU are tried first. share() returns nothing if a rank has no GPU (no NUMA node
// has the number -1), or if the NUMA node of a GPU has fewer cores than ranks. Then all ranks are placed
// without regard to GPUs.
Binding assign_cores(std::vector<Core> cores, const std::vector<Seat>& seats, double quota) {
  if (seats.size() < 2) return {};
  if (differ(seats)) return {{}, /*by_launcher=*/true};
  const Homes homes = homes_of(std::move(cores), seats.front().allowed);
  const auto num_ranks = seats.size();
  if (num_cores(homes) < num_ranks || (quota > 0 && quota < static_cast<double>(num_ranks))) return {};
  std::vector<int> near;
  for (const Seat& seat : seats) near.push_back(seat.gpu_numa);
  if (auto cpus = share(homes, near)) return {std::move(*cpus)};
  return {num_ranks <= homes.size() ? whole_homes(homes, num_ranks) : spread(homes, num_ranks)};
}

}  // namespace shardmark::doctor

// Converts hwloc's objects to values.
#include "doctor/machine/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace shardmark::machine {
namespace {

using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype([](hwloc_bitmap_t set) { hwloc_bitmap_free(set); })>;

Numbers numbers(hwloc_const_bitmap_t set) {
  Numbers found;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) found.push_back(i);
  return found;
}

std::vector<doctor::Core> cores_in(hwloc_topology_t topology) {
  // Some virtual machines show processors, but no cores.
  const bool knows_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = knows_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<doctor::Core> cores;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, type, core)) != nullptr;)
    cores.push_back({std::max(0, hwloc_bitmap_first(core->nodeset)), numbers(core->cpuset)});
  return cores;
}

bool meet(const Numbers& a, const Numbers& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

void Topology::Free::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Topology::Topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw SystemError("hwloc does not start");
  topology_.reset(topology);
  if (hwloc_topology_load(topology) != 0) throw SystemError("hwloc cannot read this node's topology");
  cores_ = cores_in(topology);
}

Numbers Topology::allowed() const {
  const Bitmap set(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology_.get(), set.get(), HWLOC_CPUBIND_THREAD) == 0) return numbers(set.get());
  return numbers(hwloc_topology_get_allowed_cpuset(topology_.get()));
}

Numbers Topology::numa_of(const Numbers& cpus) const {
  std::set<int> numa;
  for (const auto& core : cores_)
    if (meet(core.cpus, cpus)) numa.insert(core.numa);
  return {numa.begin(), numa.end()};
}

int Topology::num_cores(const Numbers& cpus) const {
  return static_cast<int>(std::count_if(cores_.begin(), cores_.end(),
                                        [&](const doctor::Core& core) { return meet(core.cpus, cpus); }));
}

int Topology::num_numa() const {
  return std::max(1, hwloc_get_nbobjs_by_type(topology_.get(), HWLOC_OBJ_NUMANODE));
}

bool Topology::bind(const Numbers& cpus) const {
  const Bitmap set(hwloc_bitmap_alloc());
  for (int cpu : cpus) hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu));
  return hwloc_set_cpubind(topology_.get(), set.get(), HWLOC_CPUBIND_PROCESS) == 0;
}

}  // namespace shardmark::machine

// The cores of this node, and on which of them this process runs: a thin layer over hwloc.
#pragma once

#include <memory>

#include "doctor/binding.h"

struct hwloc_topology;

namespace shardmark::machine {

class Topology {
 public:
  Topology();  // as far as the control group shows the node. SystemError

  const std::vector<doctor::Core>& cores() const { return cores_; }
  doctor::Numbers allowed() const;  // logical processors that this process may run on, now
  doctor::Numbers numa_of(const doctor::Numbers& cpus) const;
  int num_cores(const doctor::Numbers& cpus) const;  // physical ones with a processor among these
  int num_numa() const;
  // All threads of this process, and those that they will make. False where the system refuses.
  bool bind(const doctor::Numbers& cpus) const;

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Free> topology_;
  std::vector<doctor::Core> cores_;
};

}  // namespace shardmark::machine

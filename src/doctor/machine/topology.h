// The cores of this node, and those on which this process may run: a thin layer over hwloc.
#pragma once

#include <memory>

#include "doctor/binding.h"

struct hwloc_topology;

namespace shardmark::machine {

class Topology {
 public:
  // Sees what the control group shows of the node. Throws SystemError if hwloc fails.
  Topology();

  const std::vector<doctor::Core>& cores() const { return cores_; }
  Numbers allowed() const;  // processors that this thread may run on now
  Numbers numa_of(const Numbers& cpus) const;
  // The number of physical cores that have a processor in `cpus`.
  int num_cores(const Numbers& cpus) const;
  int num_numa() const;
  // Binds all threads of this process, and those that they will create. Returns false if the system refuses.
  bool bind(const Numbers& cpus) const;

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Free> topology_;
  std::vector<doctor::Core> cores_;
};

}  // namespace shardmark::machine

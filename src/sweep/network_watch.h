// What the network ports of a point's nodes counted while its steps were timed.
#pragma once

#include <optional>
#include <vector>

#include "base/network_ports.h"
#include "comm/host_group.h"
#include "schema/record.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// The lowest rank of each node reads that node's ports; it takes part in a point if any rank of the node
// does. Where all ranks are on one node nothing is read, because nothing of the point goes over a network.
class NetworkWatch {
 public:
  NetworkWatch(const HostGroup& group, const Resources& resources);  // collective
  void begin();
  void stop();  // after the last timed window, before anything else is sent
  void end();   // collective; needs begin() and stop()
  // On rank 0, once the record knows its number of steps.
  void fill(Measures& measures) const;

 private:
  const HostGroup& group_;
  bool several_nodes_ = false, reads_ = false;
  std::vector<PortReading> before_, after_;
  std::optional<NetworkUse> use_;  // on rank 0
};

}  // namespace shardmark

// What the network ports of this node have counted: InfiniBand, RoCE and EFA ports (/sys/class/infiniband),
// network interfaces (/sys/class/net, and pause frames from their drivers, as `ethtool -S` shows them), and
// retransmissions of TCP (/proc/net/snmp). Drivers name their counters differently; network_ports.cpp has one
// table of the names.
//
// Sources: Linux, Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net-statistics;
// drivers/infiniband/hw/{mlx5/counters.c, bnxt_re/hw_counters.c, efa/efa_verbs.c, ionic/ionic_hw_stats.c}.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shardmark {

enum class PortCount {
  sent,      // bytes
  received,  // bytes
  sent_packets,
  received_packets,
  retransmitted,  // packets sent again, and the time-outs and NAKs that cause it
  lost,           // packets that were dropped or damaged, and links that went down
  congested       // congestion notifications and marks, and pause frames
};
inline constexpr size_t kNumPortCounts = 7;

// The counters of a port at one moment.
struct PortReading {
  std::string name;                          // "mlx5_0/1", "eth0", "tcp"
  double rate_gbit_s = 0;                    // 0: unknown
  std::map<std::string, uint64_t> counters;  // by the name of their file
};

using Counters = std::map<std::string, uint64_t>;

// Reads all ports that carry traffic of other nodes. Interfaces without hardware count only where no
// interface has any, which is so in containers and network namespaces; loopback and IPoIB never count. `root`
// is the folder that holds /sys and /proc.
std::vector<PortReading> read_ports(const std::string& root = "");
// The same with the counters of an interface's driver from this function, for tests.
std::vector<PortReading> read_ports(const std::string& root,
                                    const std::function<Counters(const std::string& interface)>& driver);

// What the driver of a network interface counts, by its own names; empty if it counts nothing.
Counters driver_counters(const std::string& interface);
// Whether a driver of network interfaces counts pause frames by this name, each frame once: those of a whole
// link, or those of a priority (PFC), sent or received.
bool counts_pause_frames(const std::string& name);

// What a port counted between two moments.
struct PortUse {
  std::string name;
  double rate_gbit_s = 0;
  std::array<double, kNumPortCounts> counts = {};
  std::string troubles;  // "packet_seq_err +44, link_downed +1": retransmitted and lost, by their counters
  bool has_vanished = false;  // no longer there: its link or its driver went away

  double count(PortCount what) const { return counts[static_cast<size_t>(what)]; }
};

// A counter that is lower than before has wrapped if it has 32 bits and was in their upper half; otherwise it
// was reset, and counts from 0. A counter that is new or gone counts nothing.
std::vector<PortUse> ports_between(const std::vector<PortReading>& before,
                                   const std::vector<PortReading>& after);

// For messages between ranks: a line for each port.
std::string to_text(const std::vector<PortUse>& ports);
std::vector<PortUse> ports_from_text(const std::string& text);

// What the ports of several nodes counted together.
struct NetworkUse {
  std::array<double, kNumPortCounts> counts = {};
  int64_t num_idle = 0;  // ports that carried next to nothing while others of their node and rate were busy
  std::string remarks;   // which ports were idle, gone or in trouble, and which one sent most
};
struct NodePorts {
  std::string node;
  std::vector<PortUse> ports;
};
NetworkUse network_use(const std::vector<NodePorts>& nodes);

}  // namespace shardmark

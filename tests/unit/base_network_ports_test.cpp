// Tests what network ports counted, with invented trees of /sys and /proc in the words of four drivers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/network_ports.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// A machine whose files the tests write.
class Machine {
 public:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = scratch_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  // A counter of port 1 of an InfiniBand device.
  void rdma(const std::string& device, const std::string& counter, const std::string& value) const {
    write("sys/class/infiniband/" + device + "/ports/1/" + counter, value);
  }
  void interface(const std::string& name, const std::string& file, const std::string& value) const {
    write("sys/class/net/" + name + "/" + file, value);
  }
  void remove(const std::string& folder) const { std::filesystem::remove_all(scratch_ / folder); }
  std::vector<PortReading> read() const { return read_ports(scratch_ / "."); }
  std::vector<PortReading> read(const std::function<Counters(const std::string&)>& driver) const {
    return read_ports(scratch_ / ".", driver);
  }

 private:
  ScratchDirectory scratch_;
};

std::vector<std::string> names_of(const std::vector<PortReading>& ports) {
  std::vector<std::string> names;
  for (const PortReading& port : ports) names.push_back(port.name);
  return names;
}

TEST(NetworkPorts, AMachineWithoutAny) {
  EXPECT_TRUE(Machine().read().empty());
  EXPECT_EQ(network_use({{"node1", {}}}).remarks, "");
}

TEST(NetworkPorts, Mlx5CountsWordsOfFourBytes) {
  const Machine machine;
  machine.rdma("mlx5_0", "rate", "400 Gb/sec (4X NDR)");
  for (const char* counter : {"counters/port_xmit_data", "counters/port_rcv_data",
                              "counters/port_xmit_packets", "counters/port_rcv_packets"})
    machine.rdma("mlx5_0", counter, "1000");
  for (const char* counter :
       {"hw_counters/packet_seq_err", "counters/symbol_error", "hw_counters/np_cnp_sent"})
    machine.rdma("mlx5_0", counter, "7");
  const auto before = machine.read();
  ASSERT_EQ(names_of(before), std::vector<std::string>{"mlx5_0/1"});
  EXPECT_EQ(before[0].rate_gbit_s, 400);
  machine.rdma("mlx5_0", "counters/port_xmit_data", "251000");
  machine.rdma("mlx5_0", "counters/port_rcv_data", "1500");
  machine.rdma("mlx5_0", "counters/port_xmit_packets", "1250");
  machine.rdma("mlx5_0", "counters/port_rcv_packets", "1040");
  machine.rdma("mlx5_0", "hw_counters/packet_seq_err", "9");
  machine.rdma("mlx5_0", "counters/symbol_error", "8");
  machine.rdma("mlx5_0", "hw_counters/np_cnp_sent", "17");
  const auto uses = ports_between(before, machine.read());
  EXPECT_THAT(uses.at(0).counts, ElementsAre(1e6, 2000, 250, 40, 2, 1, 10));
  EXPECT_EQ(uses[0].troubles, "symbol_error +1, packet_seq_err +2");
}

// Drivers have hundreds of counters. Of those about pause frames only some count each frame once.
TEST(NetworkPorts, PauseFramesAreCountedOnce) {
  for (const char* name :
       {"rx_prio3_pause", "tx_global_pause", "rx_pause_frames", "tx_pfc_ena_frames_pri3", "link_xoff_rx.nic",
        "tx_priority_3_xoff.nic", "port.link_xoff_tx", "rx_xoff", "tx_pause"})
    EXPECT_TRUE(counts_pause_frames(name)) << name;
  for (const char* name : {"rx_pause_ctrl_phy", "rx_prio3_pause_duration", "tx_prio3_pause_transition",
                           "tx_pause_storm_warning_events", "rx_global_pause_transition", "link_xon_rx.nic",
                           "rx_packets", "pause", ""})
    EXPECT_FALSE(counts_pause_frames(name)) << name;
}

TEST(NetworkPorts, PauseFramesOfDriversAreCongestion) {
  const Machine machine;
  machine.interface("eth0", "type", "1");
  machine.interface("eth0", "statistics/tx_bytes", "5");
  Counters of_driver = {{"tx_prio3_pause", 100}, {"rx_global_pause", 7}, {"rx_pause_ctrl_phy", 107}};
  const auto read = [&] {
    return machine.read([&](const std::string& name) { return name == "eth0" ? of_driver : Counters(); });
  };
  const auto before = read();
  of_driver["tx_prio3_pause"] += 20;
  of_driver["rx_global_pause"] += 3;
  of_driver["rx_pause_ctrl_phy"] += 23;
  of_driver["tx_prio4_pause"] = 1000;  // a counter that is new counts nothing
  const auto uses = ports_between(before, read());
  EXPECT_EQ(uses.at(0).count(PortCount::congested), 23);
  EXPECT_EQ(uses[0].troubles, "");
}

// The loopback's driver has no counters, and an interface that is not there neither.
TEST(NetworkPorts, DriversOfThisMachineAreAsked) {
  EXPECT_TRUE(driver_counters("lo").empty());
  EXPECT_TRUE(driver_counters("nowhere0").empty());
  EXPECT_TRUE(driver_counters(std::string(100, 'x')).empty());
}

TEST(NetworkPorts, DriversHaveTheirOwnWords) {
  struct Driver {
    const char *device, *sent, *received, *again, *lost, *congestion;
  };
  for (const Driver& driver :
       {Driver{"bnxt_re0", "tx_bytes", "rx_bytes", "to_retransmits", "rx_roce_discards", "rx_cnp_pkts"},
        Driver{"rdmap0s31", "tx_bytes", "rx_bytes", "retrans_pkts", "rx_drops",
               "impaired_remote_conn_events"},
        Driver{"ionic_0", "tx_rdma_ucast_bytes", "rx_rdma_ucast_bytes", "tx_rdma_retx_pkts",
               "resp_rx_outof_buf", "rx_rdma_ecn_pkts"}}) {
    const Machine machine;
    const auto set = [&](const char* counter, int value) {
      machine.rdma(driver.device, std::string("hw_counters/") + counter, std::to_string(value));
    };
    for (const char* counter : {driver.sent, driver.received, driver.again, driver.lost, driver.congestion})
      set(counter, 100);
    // Some kernels show this file for every device. Bytes must not count twice.
    machine.rdma(driver.device, "counters/port_xmit_data", "0");
    const auto before = machine.read();
    set(driver.sent, 1100);
    set(driver.received, 2100);
    set(driver.again, 101);
    set(driver.lost, 102);
    set(driver.congestion, 103);
    machine.rdma(driver.device, "counters/port_xmit_data", "250");
    EXPECT_THAT(ports_between(before, machine.read()).at(0).counts, ElementsAre(1000, 2000, 0, 0, 1, 2, 3))
        << driver.device;
  }
}

TEST(NetworkPorts, InterfacesWithoutHardwareCountOnlyAlone) {
  const Machine machine;
  machine.interface("lo", "type", "772");
  machine.interface("ib0", "type", "32");
  machine.interface("veth0", "type", "1");
  machine.interface("veth0", "statistics/tx_bytes", "5");
  EXPECT_EQ(names_of(machine.read()), std::vector<std::string>{"veth0"});
  machine.interface("eth0", "type", "1");
  machine.interface("eth0", "speed", "100000");
  machine.interface("eth0", "device/vendor", "0x15b3");
  const auto ports = machine.read();
  EXPECT_EQ(names_of(ports), std::vector<std::string>{"eth0"});
  EXPECT_EQ(ports[0].rate_gbit_s, 100);
}

TEST(NetworkPorts, TcpCountsWhatItSendsAgain) {
  const Machine machine;
  const auto snmp = [&](const char* again) {
    machine.write("proc/net/snmp",
                  std::string("Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: MaxConn RetransSegs "
                              "InErrs\nTcp: -1 ") +
                      again + " 0\nUdp: InDatagrams\nUdp: 3");
  };
  snmp("40");
  const auto before = machine.read();
  snmp("52");
  const auto uses = ports_between(before, machine.read());
  EXPECT_EQ(uses.at(0).name, "tcp");
  EXPECT_EQ(uses[0].count(PortCount::retransmitted), 12);
  EXPECT_EQ(uses[0].troubles, "RetransSegs +12");
}

TEST(NetworkPorts, CountersThatWrapOrAreReset) {
  const auto increase = [](uint64_t before, uint64_t after) {
    const std::string counter = "hw_counters/tx_bytes";
    return ports_between({{"x", 0, {{counter, before}}}}, {{"x", 0, {{counter, after}}}})
        .at(0)
        .count(PortCount::sent);
  };
  EXPECT_EQ(increase(4294967290, 4), 10) << "32 bits have wrapped";
  EXPECT_EQ(increase(5000000000, 4), 4) << "a counter of more bits was reset";
  EXPECT_EQ(increase(100, 4), 4) << "far from the end of 32 bits: it was reset";
  EXPECT_EQ(increase(5000000000, 6000000000), 1e9);
}

TEST(NetworkPorts, PortsAndCountersThatVanishOrAreNew) {
  const Machine machine;
  machine.rdma("mlx5_0", "hw_counters/packet_seq_err", "3");
  machine.rdma("mlx5_1", "counters/link_downed", "3");
  machine.rdma("mlx5_2", "counters/link_downed", "3");
  const auto before = machine.read();
  machine.remove("sys/class/infiniband/mlx5_1");
  machine.remove("sys/class/infiniband/mlx5_2/ports/1/counters/link_downed");
  machine.rdma("mlx5_0", "counters/symbol_error", "9");
  machine.rdma("mlx5_3", "counters/symbol_error", "9");
  const auto uses = ports_between(before, machine.read());
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_THAT(uses[0].counts, ElementsAre(0, 0, 0, 0, 0, 0, 0));
  EXPECT_TRUE(uses[1].has_vanished);
  const NetworkUse use = network_use({{"node1", uses}});
  EXPECT_EQ(use.remarks, "node1 mlx5_1/1: gone");
  EXPECT_EQ(use.counts[static_cast<size_t>(PortCount::lost)], 1);
}

PortUse sender(const std::string& name, double rate, double sent) {
  PortUse use{name, rate, {}, "", false};
  use.counts[0] = sent;
  return use;
}

TEST(NetworkPorts, OneOfEightThatStaysIdleIsFound) {
  std::vector<PortUse> ports;
  for (int i = 0; i < 8; ++i)
    ports.push_back(sender("mlx5_" + std::to_string(i) + "/1", 400, i == 3 ? 1e4 : 1e9));
  ports.push_back(sender("eth0", 1, 1e4));  // for administration: its rate is another
  ports.push_back(sender("tcp", 400, 0));
  NetworkUse use = network_use({{"node1", ports}});
  EXPECT_EQ(use.num_idle, 1);
  EXPECT_THAT(use.remarks, ::testing::StartsWith("node1 mlx5_3/1: idle; node1 mlx5_0/1 sent most, 14 %"));
  ports.push_back(sender("eth2", 400, 1e5));  // the interface of an RDMA card
  EXPECT_EQ(network_use({{"node1", ports}}).num_idle, 1);
  ports.back().counts[0] = 1e10;  // TCP over these cards: then their RDMA ports are not used
  ports.push_back(sender("eth3", 400, 1e5));
  EXPECT_EQ(network_use({{"node1", ports}}).num_idle, 1);
  for (PortUse& port : ports) port.counts[0] /= 1e5;  // nobody used the network: nothing can be said
  EXPECT_EQ(network_use({{"node1", ports}}).num_idle, 0);
}

TEST(NetworkPorts, ManyTroublesAreCutShort) {
  std::vector<PortUse> ports;
  for (int i = 0; i < 8; ++i) {
    ports.push_back(sender("p" + std::to_string(i), 0, 0));
    ports.back().troubles = "symbol_error +1";
  }
  EXPECT_THAT(network_use({{"n", ports}}).remarks, ::testing::EndsWith("n p5: symbol_error +1; and 2 more"));
}

TEST(NetworkPorts, TroublesAreSaidBeforeIdlePorts) {
  std::vector<PortUse> idle = {sender("mlx5_9/1", 400, 1e9)};
  for (int i = 0; i < 8; ++i) idle.push_back(sender("mlx5_" + std::to_string(i) + "/1", 400, 0));
  PortUse lossy = sender("mlx5_0/1", 400, 1e9);
  lossy.troubles = "symbol_error +1";
  const NetworkUse use = network_use({{"node1", idle}, {"node2", {lossy}}});
  EXPECT_EQ(use.num_idle, 8);
  EXPECT_THAT(use.remarks, ::testing::StartsWith("node2 mlx5_0/1: symbol_error +1; node1 mlx5_0/1: idle"));
}

TEST(NetworkPorts, TravelAsText) {
  std::vector<PortUse> ports = {sender("mlx5_0/1", 400, 12345678901234), sender("eth0", 0, 0)};
  ports[0].troubles = "symbol_error +1, packet_seq_err +2";
  ports[1].has_vanished = true;
  const auto arrived = ports_from_text(to_text(ports));
  ASSERT_EQ(arrived.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(arrived[i].name, ports[i].name);
    EXPECT_EQ(arrived[i].rate_gbit_s, ports[i].rate_gbit_s);
    EXPECT_THAT(arrived[i].counts[0], DoubleEq(ports[i].counts[0]));
    EXPECT_EQ(arrived[i].troubles, ports[i].troubles);
    EXPECT_EQ(arrived[i].has_vanished, ports[i].has_vanished);
  }
}

}  // namespace
}  // namespace shardmark

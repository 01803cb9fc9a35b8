// The names of counters, their readings, and what several nodes used.
#include "base/network_ports.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "base/handle.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

struct CounterName {
  const char* file;  // in the folder of a port or an interface
  PortCount what;
  uint64_t unit = 1;
};

// Bytes and packets have several names, of which a port may have more than one: the first that is there
// counts.
constexpr CounterName kTrafficNames[] = {
    {"hw_counters/tx_rdma_ucast_bytes", PortCount::sent},      // ionic
    {"hw_counters/rx_rdma_ucast_bytes", PortCount::received},  //
    {"hw_counters/tx_bytes", PortCount::sent},                 // efa, bnxt_re
    {"hw_counters/rx_bytes", PortCount::received},             //
    {"counters/port_xmit_data", PortCount::sent, 4},           // in words of 4 bytes
    {"counters/port_rcv_data", PortCount::received, 4},        //
    {"statistics/tx_bytes", PortCount::sent},                  // interfaces
    {"statistics/rx_bytes", PortCount::received},
    {"hw_counters/tx_rdma_ucast_pkts", PortCount::sent_packets},      // ionic
    {"hw_counters/rx_rdma_ucast_pkts", PortCount::received_packets},  //
    {"hw_counters/tx_pkts", PortCount::sent_packets},                 // efa, bnxt_re
    {"hw_counters/rx_pkts", PortCount::received_packets},             //
    {"counters/port_xmit_packets", PortCount::sent_packets},          // InfiniBand, mlx5
    {"counters/port_rcv_packets", PortCount::received_packets},       //
    {"statistics/tx_packets", PortCount::sent_packets},               // interfaces
    {"statistics/rx_packets", PortCount::received_packets},
};

constexpr CounterName kEventNames[] = {
    // every InfiniBand port
    {"counters/symbol_error", PortCount::lost},
    {"counters/link_error_recovery", PortCount::lost},
    {"counters/link_downed", PortCount::lost},
    {"counters/port_rcv_errors", PortCount::lost},
    {"counters/port_xmit_discards", PortCount::lost},
    {"counters/local_link_integrity_errors", PortCount::lost},
    {"counters/excessive_buffer_overrun_errors", PortCount::lost},
    // mlx5. Its out_of_sequence also counts what adaptive routing reorders, so it is left out.
    {"hw_counters/packet_seq_err", PortCount::retransmitted},
    {"hw_counters/local_ack_timeout_err", PortCount::retransmitted},
    {"hw_counters/implied_nak_seq_err", PortCount::retransmitted},
    {"hw_counters/rnr_nak_retry_err", PortCount::retransmitted},
    {"hw_counters/roce_adp_retrans", PortCount::retransmitted},
    {"hw_counters/out_of_buffer", PortCount::lost},
    {"hw_counters/rx_icrc_encapsulated", PortCount::lost},
    {"hw_counters/np_cnp_sent", PortCount::congested},
    {"hw_counters/rp_cnp_handled", PortCount::congested},
    {"hw_counters/np_ecn_marked_roce_packets", PortCount::congested},
    // bnxt_re
    {"hw_counters/to_retransmits", PortCount::retransmitted},
    {"hw_counters/seq_err_naks_rcvd", PortCount::retransmitted},
    {"hw_counters/rnr_naks_rcvd", PortCount::retransmitted},
    {"hw_counters/max_retry_exceeded", PortCount::lost},
    {"hw_counters/oos_drop_count", PortCount::lost},
    {"hw_counters/rx_roce_errors", PortCount::lost},
    {"hw_counters/rx_roce_discards", PortCount::lost},
    {"hw_counters/tx_roce_errors", PortCount::lost},
    {"hw_counters/tx_roce_discards", PortCount::lost},
    {"hw_counters/rx_cnp_pkts", PortCount::congested},
    {"hw_counters/tx_cnp_pkts", PortCount::congested},
    {"hw_counters/rx_ecn_marked_pkts", PortCount::congested},
    // efa
    {"hw_counters/retrans_pkts", PortCount::retransmitted},
    {"hw_counters/retrans_timeout_events", PortCount::retransmitted},
    {"hw_counters/rx_drops", PortCount::lost},
    {"hw_counters/unresponsive_remote_events", PortCount::lost},
    {"hw_counters/impaired_remote_conn_events", PortCount::congested},
    // ionic
    {"hw_counters/tx_rdma_retx_pkts", PortCount::retransmitted},
    {"hw_counters/tx_rdma_ack_timeout", PortCount::retransmitted},
    {"hw_counters/req_rx_pkt_seq_err", PortCount::retransmitted},
    {"hw_counters/req_rx_rnr_retry_err", PortCount::retransmitted},
    {"hw_counters/req_tx_retry_excd_err", PortCount::lost},
    {"hw_counters/resp_rx_outof_buf", PortCount::lost},
    {"hw_counters/rx_rdma_mtu_discard_pkts", PortCount::lost},
    {"hw_counters/rx_rdma_cnp_pkts", PortCount::congested},
    {"hw_counters/tx_rdma_cnp_pkts", PortCount::congested},
    {"hw_counters/rx_rdma_ecn_pkts", PortCount::congested},
    // Interfaces. Their rx_dropped also counts packets of protocols that nobody listens to.
    {"statistics/rx_errors", PortCount::lost},
    {"statistics/tx_errors", PortCount::lost},
    {"statistics/tx_dropped", PortCount::lost},
    {"statistics/rx_missed_errors", PortCount::lost},
    {"carrier_down_count", PortCount::lost},
    // TCP of this node or network namespace
    {"RetransSegs", PortCount::retransmitted},
};

struct CloseSocket {
  void operator()(int socket) const { close(socket); }
};

// A structure of the kernel that ends in an array, for which its caller provides the room. The memory holds
// the structure and that array. It consists of 64-bit words, so that both are aligned.
template <class T>
class Question {
 public:
  explicit Question(size_t answer_bytes) : memory_((sizeof(T) + answer_bytes + 7) / 8) {}
  T* operator->() { return reinterpret_cast<T*>(memory_.data()); }
  char* memory() { return reinterpret_cast<char*>(memory_.data()); }
  const char* answer() { return memory() + sizeof(T); }

 private:
  std::vector<uint64_t> memory_;
};

std::string first_line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<uint64_t> number_in(const fs::path& file) {
  const std::string text = first_line_of(file);
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
  return value;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;  // not there, or not readable: nothing to count
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

void read_counters(const fs::path& folder, PortReading& port) {
  const auto read = [&](const CounterName& name) {
    if (const auto value = number_in(folder / name.file)) port.counters[name.file] = *value;
  };
  for (const CounterName& name : kTrafficNames) read(name);
  for (const CounterName& name : kEventNames) read(name);
}

constexpr int kLoopback = 772, kIpOverInfiniBand = 32;  // ARPHRD_* of <linux/if_arp.h>

// Counters of drivers have names of their own, so they are told from files.
constexpr const char* kOfDriver = "ethtool/";

void add_interfaces(const fs::path& root, const std::function<Counters(const std::string&)>& driver,
                    std::vector<PortReading>& ports) {
  std::vector<fs::path> all, with_hardware;
  for (const fs::path& folder : folders_in(root / "sys/class/net")) {
    const auto type = number_in(folder / "type");
    if (!type || *type == kLoopback || *type == kIpOverInfiniBand) continue;
    all.push_back(folder);
    std::error_code failed;
    if (fs::exists(folder / "device", failed)) with_hardware.push_back(folder);
  }
  for (const fs::path& folder : with_hardware.empty() ? all : with_hardware) {
    // An interface that is down has no speed, and reading it is an error.
    PortReading port{
        folder.filename(), static_cast<double>(number_in(folder / "speed").value_or(0)) / 1000, {}};
    read_counters(folder, port);
    for (const auto& [name, value] : driver(port.name))
      if (counts_pause_frames(name)) port.counters[kOfDriver + name] = value;
    ports.push_back(std::move(port));
  }
}

// The file has two lines for each protocol: names, then values.
void add_tcp(const fs::path& root, std::vector<PortReading>& ports) {
  std::ifstream stream(root / "proc/net/snmp");
  for (std::string names, values; std::getline(stream, names) && std::getline(stream, values);) {
    std::istringstream name(names), value(values);
    std::string word, number;
    while (name >> word && value >> number)
      if (names.starts_with("Tcp:") && word == "RetransSegs")
        ports.push_back({"tcp", 0, {{word, std::strtoull(number.c_str(), nullptr, 10)}}});
  }
}

double increase(uint64_t before, uint64_t after) {
  if (after >= before) return static_cast<double>(after - before);
  constexpr uint64_t k32Bits = uint64_t{1} << 32;
  const bool wrapped = before < k32Bits && before >= k32Bits / 2;
  return static_cast<double>(wrapped ? after + k32Bits - before : after);
}

std::string name_of(const CounterName& counter) {
  const std::string file = counter.file;
  return file.substr(file.rfind('/') + 1);
}

// What a port counted between two readings. Bytes and packets are taken from the first name of the table
// that both readings have, because other names count the same traffic again. Events of all names add up.
PortUse use_of(const PortReading& before, const PortReading& after) {
  PortUse use{after.name, after.rate_gbit_s, {}, "", false};
  const auto grown = [&](const CounterName& name) -> std::optional<double> {
    const auto was = before.counters.find(name.file), is = after.counters.find(name.file);
    if (was == before.counters.end() || is == after.counters.end()) return {};
    return increase(was->second, is->second) * static_cast<double>(name.unit);
  };
  std::array<bool, kNumPortCounts> known = {};
  for (const CounterName& name : kTrafficNames) {
    const auto what = static_cast<size_t>(name.what);
    const auto by = grown(name);
    if (!by || known[what]) continue;
    use.counts[what] = *by;
    known[what] = true;
  }
  for (const CounterName& name : kEventNames) {
    const double by = grown(name).value_or(0);
    use.counts[static_cast<size_t>(name.what)] += by;
    if (by > 0 && name.what != PortCount::congested)
      use.troubles += fmt::format("{}{} +{:.0f}", use.troubles.empty() ? "" : ", ", name_of(name), by);
  }
  for (const auto& [name, is] : after.counters)
    if (const auto was = before.counters.find(name);
        name.starts_with(kOfDriver) && was != before.counters.end())
      use.counts[static_cast<size_t>(PortCount::congested)] += increase(was->second, is);
  return use;
}

bool is_rdma(const PortUse& port) { return port.name.find('/') != std::string::npos; }

// A port is idle if the busiest port of its node is of the same kind and rate and sent this much more. An
// RDMA port and its own network interface are two kinds: a run uses one of them.
constexpr double kBusyBytes = 1e6, kIdleShare = 0.01;

bool is_idle(const PortUse& port, const std::vector<PortUse>& of_node) {
  const PortUse& busiest = *std::max_element(
      of_node.begin(), of_node.end(),
      [](const auto& a, const auto& b) { return a.count(PortCount::sent) < b.count(PortCount::sent); });
  const double most = busiest.count(PortCount::sent);
  return port.name != "tcp" && is_rdma(port) == is_rdma(busiest) && port.rate_gbit_s == busiest.rate_gbit_s &&
         most > kBusyBytes && port.count(PortCount::sent) < kIdleShare * most;
}

constexpr size_t kMostRemarks = 6;

}  // namespace

std::vector<PortReading> read_ports(const std::string& root) { return read_ports(root, driver_counters); }

std::vector<PortReading> read_ports(const std::string& root,
                                    const std::function<Counters(const std::string& interface)>& driver) {
  const fs::path top = root.empty() ? "/" : root;
  std::vector<PortReading> ports;
  for (const fs::path& device : folders_in(top / "sys/class/infiniband"))
    for (const fs::path& folder : folders_in(device / "ports")) {
      PortReading port{device.filename().string() + "/" + folder.filename().string(), 0, {}};
      port.rate_gbit_s =
          std::strtod(first_line_of(folder / "rate").c_str(), nullptr);  // "400 Gb/sec (4X NDR)"
      read_counters(folder, port);
      ports.push_back(std::move(port));
    }
  add_interfaces(top, driver, ports);
  add_tcp(top, ports);
  return ports;
}

Counters driver_counters(const std::string& interface) {
  ifreq request{};
  const Handle<int, CloseSocket> socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), -1);
  if (!socket || interface.size() >= sizeof request.ifr_name) return {};
  interface.copy(request.ifr_name, interface.size());
  const auto ask = [&](auto& question) {
    request.ifr_data = question.memory();
    return ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
  };
  // How many counters there are, then their names, then their values.
  Question<ethtool_sset_info> size(sizeof(uint32_t));
  size->cmd = ETHTOOL_GSSET_INFO;
  size->sset_mask = uint64_t{1} << ETH_SS_STATS;
  uint32_t count = 0;
  if (!ask(size) || size->sset_mask == 0) return {};
  std::memcpy(&count, size.answer(), sizeof count);
  // Some kernels answer with as many counters as there are by then, whatever was asked for.
  const size_t room = size_t{count} + 1024;
  Question<ethtool_gstrings> names(room * ETH_GSTRING_LEN);
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = count;
  Question<ethtool_stats> values(room * sizeof(uint64_t));
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = count;
  if (count == 0 || !ask(names) || !ask(values)) return {};
  Counters counters;
  count = std::min({count, names->len, values->n_stats});  // a driver may have fewer by now
  for (uint32_t i = 0; i < count; ++i) {
    const char* const name = names.answer() + size_t{i} * ETH_GSTRING_LEN;
    uint64_t value = 0;
    std::memcpy(&value, values.answer() + size_t{i} * sizeof value, sizeof value);
    counters[std::string(name, strnlen(name, ETH_GSTRING_LEN))] = value;
  }
  return counters;
}

bool counts_pause_frames(const std::string& name) {
  // These are the names of mlx5 (whose rx_pause_ctrl_phy counts the same frames again), bnxt_en, ice and
  // i40e, and of drivers that have one counter for each direction.
  static const std::regex names(
      "[rt]x_(global_pause|prio\\d+_pause|pause_frames|pfc_ena_frames_pri\\d+|pause)|"
      "(port\\.)?(link_xoff_[rt]x|[rt]x_priority_\\d+_xoff|[rt]x_xoff)(\\.nic)?");
  return std::regex_match(name, names);
}

std::vector<PortUse> ports_between(const std::vector<PortReading>& before,
                                   const std::vector<PortReading>& after) {
  std::vector<PortUse> uses;
  for (const PortReading& was : before) {
    const auto is =
        std::find_if(after.begin(), after.end(), [&](const auto& other) { return other.name == was.name; });
    if (is != after.end())
      uses.push_back(use_of(was, *is));
    else
      uses.push_back({was.name, was.rate_gbit_s, {}, "", true});
  }
  return uses;
}

// The fields of a line are separated by tabs: name, rate, the counts in the order of PortCount, whether the
// port has vanished, and its troubles. The troubles come last, because they contain blanks.
std::string to_text(const std::vector<PortUse>& ports) {
  std::string text;
  for (const PortUse& port : ports)
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", port.name, port.rate_gbit_s, fmt::join(port.counts, "\t"),
                        port.has_vanished ? 1 : 0, port.troubles);
  return text;
}

std::vector<PortUse> ports_from_text(const std::string& text) {
  std::vector<PortUse> ports;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    PortUse port;
    std::getline(fields, port.name, '\t');
    fields >> port.rate_gbit_s;
    for (double& count : port.counts) fields >> count;
    fields >> port.has_vanished;
    fields.ignore();  // the tab
    std::getline(fields, port.troubles);
    ports.push_back(std::move(port));
  }
  return ports;
}

NetworkUse network_use(const std::vector<NodePorts>& nodes) {
  NetworkUse use;
  std::vector<std::string> troubled, gone, idle;
  std::string busiest;
  double most = 0;
  for (const NodePorts& node : nodes)
    for (const PortUse& port : node.ports) {
      for (size_t what = 0; what < kNumPortCounts; ++what) use.counts[what] += port.counts[what];
      const std::string name = node.node + " " + port.name;
      if (port.has_vanished) {
        use.counts[static_cast<size_t>(PortCount::lost)] += 1;  // a link that went down
        gone.push_back(name + ": gone");
      } else {
        if (is_idle(port, node.ports)) {
          ++use.num_idle;
          idle.push_back(name + ": idle");
        }
        if (!port.troubles.empty()) troubled.push_back(name + ": " + port.troubles);
      }
      if (port.count(PortCount::sent) > most) {
        most = port.count(PortCount::sent);
        busiest = name;
      }
    }
  std::vector<std::string> remarks = std::move(troubled);  // the worst first, as the last may be cut off
  remarks.insert(remarks.end(), gone.begin(), gone.end());
  remarks.insert(remarks.end(), idle.begin(), idle.end());
  const size_t num_left_out = remarks.size() > kMostRemarks ? remarks.size() - kMostRemarks : 0;
  remarks.resize(remarks.size() - num_left_out);
  if (num_left_out > 0) remarks.push_back(fmt::format("and {} more", num_left_out));
  if (!busiest.empty())
    remarks.push_back(fmt::format("{} sent most, {:.0f} %", busiest,
                                  100 * most / use.counts[static_cast<size_t>(PortCount::sent)]));
  use.remarks = fmt::format("{}", fmt::join(remarks, "; "));
  return use;
}

}  // namespace shardmark

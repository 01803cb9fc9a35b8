#include "sweep/network_watch.h"

#include "base/node.h"

namespace shardmark {

NetworkWatch::NetworkWatch(const HostGroup& group, const Resources& resources)
    : group_(group),
      several_nodes_(group.sum(resources.is_first_on_node ? 1 : 0) > 1),
      reads_(several_nodes_ && resources.is_first_on_node) {}

void NetworkWatch::begin() {
  if (reads_) before_ = read_ports();
}

void NetworkWatch::stop() {
  if (reads_) after_ = read_ports();
}

void NetworkWatch::end() {
  if (!several_nodes_) return;
  const std::string mine =
      reads_ ? host_name() + "\n" + to_text(ports_between(before_, after_)) : std::string();
  std::vector<NodePorts> nodes;
  for (const std::string& text : group_.gather(mine)) {
    if (text.empty()) continue;
    const size_t end_of_name = text.find('\n');
    nodes.push_back({text.substr(0, end_of_name), ports_from_text(text.substr(end_of_name + 1))});
  }
  if (group_.rank() == 0) use_ = network_use(nodes);
}

void NetworkWatch::fill(Measures& measures) const {
  if (!use_ || measures.num_steps <= 0) return;
  const auto count = [&](PortCount what) { return use_->counts[static_cast<size_t>(what)]; };
  const auto steps = static_cast<double>(measures.num_steps);
  measures.network_sent_bytes = count(PortCount::sent) / steps;
  measures.network_received_bytes = count(PortCount::received) / steps;
  // Not all drivers count packets.
  if (count(PortCount::sent_packets) > 0)
    measures.network_sent_packets = count(PortCount::sent_packets) / steps;
  if (count(PortCount::received_packets) > 0)
    measures.network_received_packets = count(PortCount::received_packets) / steps;
  measures.network_retransmits = count(PortCount::retransmitted);
  measures.network_losses = count(PortCount::lost);
  measures.network_congestion = count(PortCount::congested);
  measures.network_idle_ports = use_->num_idle;
  measures.network_ports = use_->remarks;
}

}  // namespace shardmark

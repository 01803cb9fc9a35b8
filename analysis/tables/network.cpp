// What the network ports of a point's nodes counted while its steps were timed.
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

double share_that_left_nodes(const MergedPoint& merged) {
  return merged.measures.network_sent_bytes /
         (merged.measures.traffic_bytes * static_cast<double>(merged.point.ranks));
}

}  // namespace

Table network_table(const MergedPoints& points) {
  std::vector<const MergedPoint*> rows;
  for (const MergedPoint& merged : points)
    if (std::isfinite(merged.measures.network_sent_bytes)) rows.push_back(&merged);
  const ColumnsOf<MergedPoint> of_traffic = {
      {{"of the traffic", "%"},
       [](const auto& merged) { return cells::percent(share_that_left_nodes(merged)); },
       "sent / what all ranks together send in a step by their operations (traffic x ranks): the share of it "
       "that left the nodes, with headers. Of short messages it is more, as ranks also agree after each "
       "window on how to go on; of others, something else used the network."}};
  const ColumnsOf<MergedPoint> ports = {
      {{"ports", ""},
       [](const auto& merged) { return cells::words(merged.measures.network_ports); },
       "which ports lost something, went away or were idle, by the driver's names of their counters; and "
       "which one sent most, of all that was sent."}};
  return make_table(
      "interconnects.ports", "Network ports of the nodes, while steps were timed",
      join(about_columns(), columns_of({{"network_sent_bytes"}, {"network_received_bytes"}}), of_traffic,
           columns_of({{"network_sent_packets", "packets a step"},
                       {"network_received_packets", "packets a step"},
                       {"network_retransmits", "packets"},
                       {"network_losses", "packets"},
                       {"network_congestion", "packets"},
                       {"network_idle_ports", {}, {}, true}}),
           ports),
      rows);
}

}  // namespace shardmark

// Links between ranks, described by a latency and a rate, to compare interconnects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "specs/collective_cost.h"

namespace shardmark::specs {

struct Link {
  std::string name;
  double latency_s;    // alpha: of one ring step
  double bytes_per_s;  // 1 / beta: one direction, by the data sheet
  std::string description;

  LinkCost cost() const { return {latency_s, 1 / bytes_per_s}; }
};

const std::vector<Link>& interconnect_links();  // NVLink, PCIe, InfiniBand

// A link by its name, such as "ndr400", or one that the user defines as NAME=LATENCY,RATE, such as
// "mine=5us,25GB/s". Throws UsageError.
Link link_from_text(const std::string& text);
// Adds such a link to `links`. Throws UsageError, also if there is a link of that name already.
void add_link(std::vector<Link>& links, const std::string& text);

// The link between the GPUs of a node, by exact device name. Nothing if the device is unknown.
std::optional<Link> link_of_device(const std::string& device_name);

}  // namespace shardmark::specs

// Links between ranks as two numbers: for comparing interconnects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "specs/collective_cost.h"

namespace shardmark::specs {

struct Link {
  std::string name;
  double latency_s;    // alpha: of one step of a ring
  double bytes_per_s;  // 1 / beta: what a rank sends in one direction, by the data sheet
  std::string description;

  LinkCost cost() const { return {latency_s, 1 / bytes_per_s}; }
};

const std::vector<Link>& interconnect_links();  // NVLink, PCIe, InfiniBand

// "ndr400", or a link of one's own as NAME=LATENCY,RATE: "mine=5us,25GB/s". Throws UsageError.
Link link_from_text(const std::string& text);
// Adds such a link to those that are compared. Throws UsageError, also for a name that is there already.
void add_link(std::vector<Link>& links, const std::string& text);

// The link between the GPUs of a node, by exact device name; nothing for a device that is not known.
std::optional<Link> link_of_device(const std::string& device_name);

}  // namespace shardmark::specs

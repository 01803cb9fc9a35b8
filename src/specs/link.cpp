// The rates are those of the makers, in one direction (NVIDIA's data sheets of each GPU, PCI-SIG, IBTA). The
// latencies are those that NCCL assumes for a ring step with its Simple protocol, over NVLink, PCIe and a
// network (NVIDIA/nccl, src/graph/tuning.cc, hwLatencies of 2.28).
#include "specs/link.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark::specs {
namespace {

constexpr double kNvLinkStep = 3.4e-6, kPcieStep = 5.7e-6, kNetworkStep = 14e-6;

std::string names() {
  std::string names;
  for (const Link& link : interconnect_links()) names += (names.empty() ? "" : ", ") + link.name;
  return names;
}

[[noreturn]] void refuse(const std::string& text) {
  throw UsageError(quoted_line(text) + " is not a link; accepted: " + names() +
                   ", or one of your own: NAME=LATENCY,RATE such as mine=5us,25GB/s");
}

}  // namespace

const std::vector<Link>& interconnect_links() {
  static const std::vector<Link> links = {
      {"nvlink3", kNvLinkStep, 300e9, "NVLink of an A100: 600 GB/s both ways together"},
      {"nvlink4", kNvLinkStep, 450e9, "NVLink of an H100 or H200: 900 GB/s both ways together"},
      {"nvlink5", kNvLinkStep, 900e9, "NVLink of a B200: 1800 GB/s both ways together"},
      {"pcie4", kPcieStep, 31.5e9, "PCIe 4.0 with 16 lanes"},
      {"pcie5", kPcieStep, 63e9, "PCIe 5.0 with 16 lanes"},
      {"hdr200", kNetworkStep, 25e9, "InfiniBand HDR, one 200 Gb/s port for each GPU"},
      {"ndr400", kNetworkStep, 50e9, "InfiniBand NDR, one 400 Gb/s port for each GPU"}};
  return links;
}

Link link_from_text(const std::string& text) {
  for (const Link& link : interconnect_links())
    if (link.name == text) return link;
  const size_t equals = text.find('='), comma = text.find(',', equals);
  if (equals == std::string::npos || equals == 0 || comma == std::string::npos) refuse(text);
  try {
    return {text.substr(0, equals), values::kLatency.parse(text.substr(equals + 1, comma - equals - 1)),
            values::kRate.parse(text.substr(comma + 1)), "as given"};
  } catch (const UsageError&) {
    refuse(text);
  }
}

void add_link(std::vector<Link>& links, const std::string& text) {
  Link link = link_from_text(text);
  for (const Link& other : links)
    if (other.name == link.name)
      throw UsageError(quoted_line(text) + ": there is a link " + quoted_line(link.name) +
                       " already; give each a name of its own");
  links.push_back(std::move(link));
}

std::optional<Link> link_of_device(const std::string& device_name) {
  static const std::map<std::string, std::string> links = {
      {"NVIDIA A100-SXM4-40GB", "nvlink3"}, {"NVIDIA A100-SXM4-80GB", "nvlink3"},
      {"NVIDIA H100 80GB HBM3", "nvlink4"}, {"NVIDIA H200", "nvlink4"},
      {"NVIDIA B200", "nvlink5"},           {"NVIDIA A100-PCIE-40GB", "pcie4"},
      {"NVIDIA A100 80GB PCIe", "pcie4"},   {"NVIDIA H100 PCIe", "pcie5"}};
  const auto found = links.find(device_name);
  return found == links.end() ? std::nullopt : std::optional(link_from_text(found->second));
}

}  // namespace shardmark::specs

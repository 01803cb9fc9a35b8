// The rules on which sources and flags must agree, one after the other.
#include "import/agreement.h"

#include <fmt/format.h>

#include "base/error.h"
#include "import/lines.h"

namespace shardmark::imports {
namespace {

// Reports everything that is missing in one message.
void require_said(const std::vector<Read>& all, const Given& given) {
  for (const auto& [source, contents] : all) {
    std::vector<std::string> missing;
    if (contents.devices.empty() && given.device.empty())
      missing.emplace_back(
          "on which devices its ranks ran: give --device, such as --device \"NVIDIA H100 80GB HBM3\" or the "
          "name of the processor");
    if (contents.transport.empty() && given.transport.empty())
      missing.emplace_back("what moved bytes between its ranks: give --transport, such as --transport nccl");
    if (!missing.empty())
      throw UsageError(fmt::format("{}: it does not say {}", source->name, fmt::join(missing, "; nor ")));
  }
}

// In one study, times of two kinds would be taken for repeats of each other.
void require_one_kind(const std::vector<Read>& all) {
  for (const auto& [source, contents] : all)
    if (contents.times != all.front().second.times)
      throw UsageError(
          fmt::format("{} has times of another kind ({}) than {} ({}); import them into two studies",
                      source->name, contents.times, all.front().first->name, all.front().second.times));
}

// A flag provides a fact that a file lacks. If the file states it, the flag must agree.
void require_flags(const std::vector<Read>& all, const Given& given) {
  for (const auto& [source, contents] : all) {
    // nccl-tests also measure rccl, msccl and other libraries with NCCL's interface.
    if (contents.transport == "nccl" && !given.transport.empty() &&
        given.transport.find("ccl") == std::string::npos)
      throw UsageError(
          fmt::format("{}: nccl-tests measure NCCL, or a library with its interface, not {} as "
                      "--transport says; leave that out",
                      source->name, given.transport));
    for (const Measured& one : contents.measured) {
      const Point& point = one.record.point;
      const std::string where = place(*source, one.line);
      ranks_of(point.ranks, given, where);
      if (given.operation.empty() || point.collective.operation == given.operation) continue;
      throw UsageError(fmt::format("{}it is {}, not {} as --operation says; leave that out", where,
                                   point.workload == "collective" ? point.collective.operation : "training",
                                   given.operation));
    }
  }
}

}  // namespace

void require_agreement(const std::vector<Read>& all, const Given& given) {
  require_one_kind(all);
  require_flags(all, given);
  require_said(all, given);
}

}  // namespace shardmark::imports

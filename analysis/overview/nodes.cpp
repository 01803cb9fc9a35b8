// The verdict on nodes in words, for the first screen and the page.
#include "analysis/stats/nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/overview/overview.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr size_t kMostNodes = 20;  // that are out or to be watched

std::string count_text(const NodesJudged& judged) {
  const auto text = [](int64_t count, const char* what, const char* several) {
    return fmt::format("{} {}", counted(count, "node"), count == 1 ? what : several);
  };
  std::string all;
  for (const auto& [verdict, one, several] : {std::tuple(NodeVerdict::out, "is out", "are out"),
                                              {NodeVerdict::watch, "is to be watched", "are to be watched"},
                                              {NodeVerdict::not_tested, "was not tested", "were not tested"},
                                              {NodeVerdict::in_service, "is in service", "are in service"}})
    if (const int64_t count = judged.count(verdict); count > 0)
      all += (all.empty() ? "" : ", ") + text(count, one, several);
  return all + ".";
}

}  // namespace

std::vector<std::string> nodes_overview(const std::optional<NodesJudged>& judged) {
  if (!judged) return {};
  std::vector<std::string> lines = {count_text(*judged)};
  std::vector<std::string> in_service, not_tested;
  size_t num_named = 0;
  for (const JudgedNode& node : judged->nodes) {
    if (node.verdict == NodeVerdict::in_service)
      in_service.push_back(node.name);
    else if (node.verdict == NodeVerdict::not_tested)
      not_tested.push_back(node.name);
    else if (++num_named <= kMostNodes)
      lines.push_back(fmt::format("{}: {}: {}.", to_text(node.verdict), node.name, node.evidence_text("; ")));
  }
  if (num_named > kMostNodes)
    lines.push_back(fmt::format("and {} more: --table nodes", num_named - kMostNodes));
  if (!in_service.empty() && num_named > 0)
    lines.push_back(fmt::format("in service: {}.", names_text(in_service)));
  if (!not_tested.empty() && num_named > 0)
    lines.push_back(fmt::format("not tested: {}.", names_text(not_tested)));
  for (const std::string& remark : judged->remarks) lines.push_back(remark + ".");
  lines.push_back(fmt::format(
      "Times are compared with {}. Differences between healthy nodes name one in at most one of 50 runs.",
      judged->basis));
  return lines;
}

}  // namespace shardmark

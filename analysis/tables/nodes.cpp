// Nodes with their verdicts, and how much longer than usual each takes for every quantity.
#include "analysis/stats/nodes.h"

#include <fmt/format.h>

#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

ColumnsOf<JudgedNode> node_columns() {
  ColumnsOf<JudgedNode> columns = {
      {{"node", "", false}, [](const JudgedNode& node) { return cells::words(node.name); }},
      {{"ranks", ""}, [](const JudgedNode& node) { return cells::count(std::ssize(node.ranks)); }},
      {{"verdict", "", false},
       [](const JudgedNode& node) { return cells::words(std::string(to_text(node.verdict))); },
       "out: its results are wrong, the preflight stopped because of it, or one of its ranks takes longer "
       "than the "
       "limit that a column names. watch: a rank takes longer than the lower limit there, or the preflight "
       "has a "
       "warning. Times count only beyond what healthy ranks differ by."}};
  for (const NodeQuantity& quantity : node_quantities())
    columns.push_back({{.name = std::string(quantity.heading),
                        .unit = "%",
                        .fold = false,
                        .group = "longer than usual",
                        .is_optional = true},
                       [&quantity](const JudgedNode& node) {
                         const auto found = node.excess.find(quantity.key);
                         return cells::percent(found == node.excess.end() ? Measures::kNone : found->second);
                       },
                       fmt::format("how much longer its slowest rank takes {} than the usual rank: watch "
                                   "from {:.0f} % on, out from "
                                   "{:.0f} %.",
                                   quantity.what, 100 * quantity.watch, 100 * quantity.out)});
  columns.push_back({{"evidence", "", false, true},
                     [](const JudgedNode& node) { return cells::words(node.evidence_text("; ")); }});
  return columns;
}

}  // namespace

Table nodes_table(const std::optional<NodesJudged>& judged) {
  Table table = make_table("nodes", "Nodes, with a verdict on each", node_columns(),
                           judged ? judged->nodes : std::vector<JudgedNode>());
  if (!judged) return table;
  table.notes = judged->remarks;
  table.notes.push_back(
      fmt::format("Times are compared with {}. The chance that differences between healthy nodes name any of "
                  "them is at most {:.0f} %.",
                  judged->basis, 100 * kFalseAlarms));
  return table;
}

}  // namespace shardmark

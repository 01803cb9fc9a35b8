// The page and JUnit's XML of a study that judges nodes. A node that is to be watched is a skipped test,
// because whoever repairs nodes need not act, but should see why.
#include "cli/node_verdicts.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "analysis/page/page.h"
#include "analysis/stats/nodes.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "cli/junit_output.h"

namespace shardmark {
namespace {

JUnitSuite tests_of(const NodesJudged& judged) {
  using Outcome = JUnitCase::Outcome;
  JUnitSuite suite{"shardmark accept", {{"compared with", judged.basis}}, {}};
  for (const JudgedNode& node : judged.nodes) {
    JUnitCase& one = suite.cases.emplace_back(JUnitCase{node.name});
    one.outcome = node.verdict == NodeVerdict::out     ? Outcome::failed
                  : node.verdict == NodeVerdict::watch ? Outcome::skipped
                                                       : Outcome::passed;
    for (const NodeEvidence& evidence : node.evidence)
      one.message += (one.message.empty() ? "" : "\n") + evidence.words;
  }
  return suite;
}

}  // namespace

int write_verdicts(const std::string& study, const std::vector<StudyData>& studies,
                   const ReportInputs& inputs) {
  const ReportData data(studies, inputs.references);
  const auto judged = judge_nodes(studies, data.points);
  if (!judged) {
    log_line(study + " holds no tests of nodes, so there is no verdict");
    return kWrong;
  }
  const auto beside = [&](const char* extension) {
    return std::filesystem::path(study).replace_extension(extension).string();
  };
  const std::string page = make_page(data, inputs);
  constexpr const char* kAdvice = "name a study elsewhere: -o FILE";
  write_whole(beside(".html"), kAdvice, [&](std::ostream& out) { out << page; });
  write_junit(beside(".xml"), tests_of(*judged));
  log_line(fmt::format("page: {}; for CI: {}", beside(".html"), beside(".xml")));
  return judged->count(NodeVerdict::out) > 0 ? kWrong : kDone;
}

}  // namespace shardmark

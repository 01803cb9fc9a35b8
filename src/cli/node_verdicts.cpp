// The page and JUnit's XML of a study that judges nodes. A node that is to be watched is a skipped test,
// because whoever repairs nodes need not act, but should see why.
#include "cli/node_verdicts.h"

#include <fmt/format.h>

#include <ostream>

#include "analysis/page/page.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "cli/junit_output.h"
#include "cli/table_output.h"
#include "schema/file.h"

namespace shardmark {
namespace {

JUnitSuite tests_of(const NodesJudged& judged) {
  using Outcome = JUnitCase::Outcome;
  JUnitSuite suite{"shardmark accept", {{"compared with", judged.basis}}, {}};
  for (const JudgedNode& node : judged.nodes) {
    JUnitCase& one = suite.cases.emplace_back(JUnitCase{node.name});
    one.outcome = node.verdict == NodeVerdict::out          ? Outcome::failed
                  : node.verdict == NodeVerdict::in_service ? Outcome::passed
                                                            : Outcome::skipped;
    one.message = node.verdict == NodeVerdict::not_tested ? "it was not tested" : node.evidence_text("\n");
  }
  return suite;
}

// "results/x.html" for "results/x.h5".
std::string beside(const std::string& study, const char* extension) {
  const std::string stem = study.ends_with(".h5") ? study.substr(0, study.size() - 3) : study;
  return stem + extension;
}

}  // namespace

void require_places_of_verdicts(const std::string& study) {
  for (const char* const extension : {".html", ".xml"})
    require_free(beside(study, extension), false, {study});
}

int write_verdicts(const std::string& study, const std::vector<StudyData>& studies,
                   const ReportInputs& inputs) {
  const ReportData data(studies, inputs.references);
  const std::optional<NodesJudged>& judged = data.nodes;
  if (!judged) {
    log_line(study + " holds no tests of nodes, so there is no verdict");
    return kWrong;
  }
  JUnitSuite tests = tests_of(*judged);
  sign(tests);
  try {
    const std::string page = make_page(data, inputs);
    constexpr const char* kAdvice = "shardmark report --html writes the page elsewhere";
    write_whole(beside(study, ".html"), kAdvice, [&](std::ostream& out) { out << page; });
    write_whole(beside(study, ".xml"), kAdvice, [&](std::ostream& out) { out << to_junit(tests); });
    log_line(fmt::format("page: {}; for CI: {}", beside(study, ".html"), beside(study, ".xml")));
  } catch (const UsageError& error) {
    log_warning(error.what());
  }
  return judged->count(NodeVerdict::out) > 0 ? kWrong : kDone;
}

}  // namespace shardmark

// Runs all checks and sorts the findings, the worst first.
#include "doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark::doctor {

const char* to_text(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

std::string to_text(const Finding& finding) {
  return fmt::format("{}: {}{}{}", ranks_text(finding.ranks), finding.what, finding.fix.empty() ? "" : "; ",
                     finding.fix);
}

std::vector<Finding> examine(const World& world) {
  Findings findings;
  for (const Check& check : kChecks) {
    const size_t before = findings.size();
    check.run(world, findings);
    for (size_t i = before; i < findings.size(); ++i) findings[i].check = check.name;
  }
  for (Finding& finding : findings) std::sort(finding.ranks.begin(), finding.ranks.end());
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return findings;
}

}  // namespace shardmark::doctor

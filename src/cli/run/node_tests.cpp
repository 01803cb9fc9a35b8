// Puts the tests of nodes together: what they need of the suite, the preflight's findings, the baseline.
#include "cli/run/node_tests.h"

#include <filesystem>

#include "base/error.h"
#include "cli/run/doctor_links.h"
#include "comm/in_step.h"
#include "doctor/machine/node_tests.h"
#include "schema/study.h"

namespace shardmark {
namespace {

// What a healthy cluster reached, from an earlier study of such a suite.
void read_baseline(const Suite& suite, NodeTests& tests) {
  if (suite.accept->baseline.empty()) return;
  const std::filesystem::path given = suite.accept->baseline;
  const std::string path = given.is_absolute() || std::filesystem::exists(given)
                               ? given.string()
                               : (std::filesystem::path(suite.path).parent_path() / given).string();
  const auto before = node_tests_of(read_study(path, Load::without_samples).environment);
  if (!before)
    throw UsageError(path +
                     ": accept.baseline: this study has no tests of nodes; take a study of a suite with "
                     "`accept`");
  tests.baseline = path;
  tests.expected = medians_of(*before);
}

void add_findings(const Preflight& checked, NodeTests& tests) {
  for (const doctor::Finding& finding : checked.findings) {
    if (finding.severity == doctor::Severity::note) continue;
    NodeTests::Found found{to_text(finding.severity), {}, finding.what + "; " + finding.fix};
    found.ranks.assign(finding.ranks.begin(), finding.ranks.end());
    tests.found.push_back(std::move(found));
  }
}

}  // namespace

NodeTests test_nodes(const Suite& suite, const WorldFlags& flags, const Ranks& ranks,
                     const Preflight& checked) {
  const HostGroup& world = *ranks.world;
  NodeTests tests;
  together(world, [&] {
    if (world.rank() == 0) read_baseline(suite, tests);
  });
  const bool is_stopped = world.broadcast(static_cast<int64_t>(!checked.stopper().empty()), 0) != 0;
  if (!is_stopped) {
    machine::NodeTestOptions options;
    options.transport = transport_for(flags, checked.device);
    options.device = checked.device;
    options.heartbeat = &ranks.heartbeat();
    options.budget_s = suite.accept->pairs_s;
    options.storage_bytes = suite.accept->storage_bytes;
    options.folder = suite.accept->folder;
    ranks.heartbeat().begin_point("the tests of nodes");
    NodeTests measured = in_step(
        world.size(), [&] { return ranks.heartbeat().place(); },
        [&] { return machine::test_nodes(world, options); });
    ranks.heartbeat().end_point();
    tests.by_rank = std::move(measured.by_rank);
    tests.found = std::move(measured.found);
  }
  tests.is_crowded = world.rank() == 0 && is_crowded(checked.ranks);
  add_findings(checked, tests);
  return tests;
}

}  // namespace shardmark

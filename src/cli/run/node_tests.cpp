// Puts the tests of nodes together: what they need of the suite, the preflight's findings, the baseline.
#include "cli/run/node_tests.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "cli/run/doctor_links.h"
#include "comm/in_step.h"
#include "device/device.h"
#include "doctor/machine/node_tests.h"
#include "schema/study.h"

namespace shardmark {
namespace {

// What a healthy cluster of the same devices reached, from an earlier study of such a suite.
void read_baseline(const std::string& baseline, const std::string& suite_path, const std::string& device,
                   NodeTests& tests) {
  if (baseline.empty()) return;
  const std::filesystem::path given = baseline;
  const std::string path = given.is_absolute() || std::filesystem::exists(given)
                               ? given.string()
                               : (std::filesystem::path(suite_path).parent_path() / given).string();
  const Environment before = read_study(path, Load::without_samples).environment;
  const std::vector<NodeTests> all = node_tests_of(before);
  if (all.empty() || all.back().is_stopped)
    throw UsageError(
        path + ": accept.baseline: this study has no tests of nodes; take a study of a suite with `accept`");
  if (!before.devices.empty() && before.devices.front() != device)
    throw UsageError(
        fmt::format("{}: accept.baseline: it was measured on {}, and ranks are on {} here; take a study "
                    "of the same devices",
                    path, before.devices.front(), device));
  tests.baseline = path;
  tests.expected = medians_of(all.back());
}

void add_findings(const Preflight& checked, NodeTests& tests) {
  for (const doctor::Finding& finding : checked.findings) {
    if (finding.severity == doctor::Severity::note) continue;
    if (finding.is_of_job) {
      tests.notes.push_back(std::string(to_text(finding.severity)) + ": " + finding.what + "; " +
                            finding.fix);
      continue;
    }
    // A warning is printed with its remedy when the ranks start.
    const bool is_error = finding.severity == doctor::Severity::error;
    NodeTests::Found found{
        to_text(finding.severity), {}, is_error ? finding.what + "; " + finding.fix : finding.what};
    found.ranks.assign(finding.ranks.begin(), finding.ranks.end());
    tests.found.push_back(std::move(found));
  }
}

}  // namespace

// The tests are collective, so all ranks must have the same settings, even if nodes have different copies of
// the suite. Only rank 0 reads the baseline, so its path is not sent.
std::optional<Acceptance> agreed_acceptance(const HostGroup& world, const Suite& suite) {
  if (world.broadcast(static_cast<int64_t>(suite.accept.has_value()), 0) == 0) return std::nullopt;
  Acceptance agreed = suite.accept.value_or(Acceptance());
  const std::vector<double> numbers =
      world.broadcast(std::vector<double>{agreed.pairs_s, static_cast<double>(agreed.storage_bytes)}, 0);
  agreed.pairs_s = numbers[0];
  agreed.storage_bytes = static_cast<int64_t>(numbers[1]);
  agreed.folder = world.broadcast(agreed.folder, 0);
  return agreed;
}

NodeTests test_nodes(const Acceptance& accept, const std::string& suite_path, const WorldFlags& flags,
                     const Ranks& ranks, const Preflight& checked, bool is_stopped) {
  const HostGroup& world = *ranks.world;
  NodeTests tests;
  together(world, [&] {
    if (world.rank() == 0) read_baseline(accept.baseline, suite_path, device_name(checked.device), tests);
  });
  if (!is_stopped) {
    machine::NodeTestOptions options;
    options.transport = transport_for(flags, checked.device);
    options.device = checked.device;
    options.heartbeat = &ranks.heartbeat();
    options.budget_s = accept.pairs_s;
    options.storage_bytes = accept.storage_bytes;
    options.folder = accept.folder;
    ranks.heartbeat().begin_point("the tests of nodes");
    NodeTests measured = in_step(
        world.size(), [&] { return ranks.heartbeat().place(); },
        [&] { return machine::test_nodes(world, options); });
    ranks.heartbeat().begin_point("the start of the ranks");
    tests.by_rank = std::move(measured.by_rank);
    tests.damage = std::move(measured.damage);
    tests.found = std::move(measured.found);
    tests.notes = std::move(measured.notes);
  }
  tests.is_stopped = is_stopped;
  tests.is_crowded = world.rank() == 0 && is_crowded(checked.ranks);
  for (const doctor::RankFacts& rank : checked.ranks) tests.hosts.push_back(rank.host);
  add_findings(checked, tests);
  return tests;
}

}  // namespace shardmark

// Compares the environment of a launch that resumes a study with that of the launches before it: versions,
// devices, nodes and the suite.
#include "schema/resumed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace shardmark {
namespace {

// The node of each rank, numbered by order of appearance, so that the same topology on other hosts is equal.
std::vector<std::string> topology(const Environment& environment) {
  std::map<std::string, size_t> nodes;
  std::vector<std::string> places;
  places.reserve(environment.rank_nodes.size());
  for (const std::string& node : environment.rank_nodes)
    places.push_back("node " + std::to_string(nodes.emplace(node, nodes.size()).first->second));
  return places;
}

// Collects the differences between the study and the launch that resumes it.
class Differences {
 public:
  template <class T>
  void compare(const std::string& what, const T& before, const T& now) {
    if (before != now) found_.push_back(fmt::format("{} ({}, now {})", what, before, now));
  }
  void compare_ranks(const std::string& what, const std::vector<std::string>& before,
                     const std::vector<std::string>& now) {
    for (size_t rank = 0; rank < std::min(before.size(), now.size()); ++rank)
      if (before[rank] != now[rank])
        return compare(fmt::format("{} of rank {}", what, rank), before[rank], now[rank]);
  }
  // The kernel's version is left out: a requeued job may get nodes with another one.
  void compare_versions(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now) {
    nlohmann::ordered_json names = before;
    names.update(now);
    names.erase("kernel");
    for (const auto& [name, ignored] : names.items())
      compare(name, before.value(name, nlohmann::ordered_json("none")).dump(),
              now.value(name, nlohmann::ordered_json("none")).dump());
  }
  std::string text() const { return fmt::format("{}", fmt::join(found_, ", ")); }

 private:
  std::vector<std::string> found_;
};

std::string difference(const Environment& before, const Environment& now) {
  Differences differences;
  differences.compare("ranks", before.world_ranks, now.world_ranks);
  differences.compare("threads per rank", before.threads_per_rank, now.threads_per_rank);
  differences.compare("transport", before.transport, now.transport);
  differences.compare_ranks("device", before.devices, now.devices);
  differences.compare_ranks("node", topology(before), topology(now));
  differences.compare_versions(*before.versions, *now.versions);
  differences.compare("revision", before.revision, now.revision);
  return differences.text();
}

// The first line in which two texts differ, and how many more differ: `line 7: "repeats: 5" is "repeats: 1"
// now`.
std::string text_difference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  std::string old_line, new_line, first;
  int64_t line = 0, more = -1;
  while (true) {
    const bool is_old = static_cast<bool>(std::getline(old_lines, old_line));
    const bool is_new = static_cast<bool>(std::getline(new_lines, new_line));
    if (!is_old && !is_new) break;
    ++line;
    if (is_old && is_new && old_line == new_line) continue;
    if (++more == 0)
      first = fmt::format("line {}: {} is {} now", line, is_old ? quoted_line(old_line) : "the end",
                          is_new ? quoted_line(new_line) : "the end");
  }
  return more > 0 ? fmt::format("{}, and {} more line{}", first, more, more == 1 ? "" : "s") : first;
}

}  // namespace

Environment resumed(const std::string& path, const Environment& before, const Environment& now,
                    GoesOn goes_on) {
  const std::string changes = difference(before, now);
  if (!changes.empty() && goes_on == GoesOn::where_it_began)
    throw UsageError(path + " cannot be resumed, its points would not be comparable: " + changes +
                     "; restore that, or choose another output");
  nlohmann::ordered_json launch = {
      {"started", now.started}, {"nodes", now.nodes}, {"kernel", (*now.versions).value("kernel", "")}};
  if (!changes.empty()) launch["changed"] = changes;
  if ((*now.facts).contains(kBusyFact)) launch[kBusyFact] = (*now.facts).at(kBusyFact);
  if (before.suite_text != now.suite_text) launch["former_suite"] = before.suite_text;
  Environment latest = changes.empty() ? before : now;
  latest.started = before.started;
  latest.command_line = now.command_line;
  latest.suite_text = now.suite_text;
  latest.suite_path = now.suite_path;
  // The list of launches is carried over, and this launch is added to it.
  auto& launches = (*latest.facts)["resumed"];
  launches = (*before.facts).value("resumed", nlohmann::ordered_json::array());
  launches.push_back(std::move(launch));
  (*latest.facts).erase(kPlannedFact);
  for (const char* const of_latest : {kPlannedFact, kResumeFact})
    if ((*now.facts).contains(of_latest)) (*latest.facts)[of_latest] = (*now.facts).at(of_latest);
  return latest;
}

void warn_of_other_suite(const std::string& path, const Environment& before, const Environment& now) {
  const auto file_name = [](const std::string& suite) { return suite.substr(suite.rfind('/') + 1); };
  const auto named = [](const std::string& suite) { return suite.empty() ? "flags alone" : suite; };
  if (file_name(before.suite_path) != file_name(now.suite_path))
    log_warning(fmt::format("{} holds points of {}; those of {} are added", path, named(before.suite_path),
                            named(now.suite_path)));
  else if (before.suite_text != now.suite_text)
    log_warning(fmt::format("{} was edited since {} began, and points of both texts are in it: {}",
                            now.suite_path, path, text_difference(before.suite_text, now.suite_text)));
}

}  // namespace shardmark

// The pair test of the doctor: runs it, and prints it as text or JSON.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/run/doctor_output.h"
#include "cli/run/preflight.h"
#include "comm/in_step.h"
#include "doctor/machine/pairs.h"

namespace shardmark {
namespace {

// More ranks than cores on a machine, whatever nodes or containers it stands for: each of those may have
// cores of its own.
bool is_crowded(const std::vector<doctor::RankFacts>& ranks) {
  struct Machine {
    int64_t ranks = 0, cores = 0;
    std::set<std::string> seen;  // sets of processors
  };
  std::map<std::string, Machine> machines;
  for (const doctor::RankFacts& rank : ranks) {
    Machine& machine = machines[rank.machine];
    ++machine.ranks;
    if (machine.seen.insert(rank.cpu.allowed).second) machine.cores += std::max<int64_t>(rank.cpu.cores, 0);
  }
  return std::any_of(machines.begin(), machines.end(),
                     [](const auto& entry) { return entry.second.ranks > entry.second.cores; });
}

}  // namespace

doctor::PairReport measure_and_report_pairs(const WorldFlags& flags, const Ranks& ranks,
                                            const Preflight& ready) {
  ranks.heartbeat().begin_point("the pair test");
  machine::PairOptions options;
  options.transport = transport_for(flags, ready.device);
  options.device = ready.device;
  options.heartbeat = &ranks.heartbeat();
  doctor::PairTest test = in_step(
      ranks.world->size(), [&] { return ranks.heartbeat().place(); },
      [&] { return machine::measure_pairs(*ranks.world, options); });
  ranks.heartbeat().end_point();
  if (ranks.world->rank() != 0) return {};
  test.crowded = is_crowded(ready.ranks);
  std::vector<std::string> hosts;
  hosts.reserve(ready.ranks.size());
  for (const doctor::RankFacts& rank : ready.ranks) hosts.push_back(rank.host);
  return doctor::report_pairs(test, hosts);
}

std::string pairs_text(const doctor::PairReport& report) {
  std::string text = "Pairs: " + report.head + "\n\n";
  for (const doctor::Map& map : report.maps) text += to_text(map) + "\n";
  for (const std::string& line : report.slow) text += "slow: " + line + "\n";
  for (const std::string& line : report.notes) text += "note: " + line + "\n";
  return text;
}

nlohmann::ordered_json pairs_json(const doctor::PairReport& report) {
  nlohmann::ordered_json json = {{"head", report.head}, {"slow", report.slow}, {"notes", report.notes}};
  for (const doctor::Map& map : report.maps) {
    auto values = nlohmann::ordered_json::array();
    for (int a = 0; a < map.speeds.size(); ++a)
      for (int b = a + 1; b < map.speeds.size(); ++b)
        if (const double speed = map.speeds.at(a, b); !std::isnan(speed))
          values.push_back({a, b, (map.inverse ? 1 / speed : speed) * map.scale});
    json["maps"].push_back(
        {{"title", map.title}, {"unit", map.unit}, {"names", map.names}, {"pairs", values}});
  }
  return json;
}

}  // namespace shardmark

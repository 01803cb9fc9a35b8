// Runs the tests of links on all ranks, and shows their results as text, JSON or HTML.
#include "cli/run/doctor_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/table/columns.h"
#include "base/error.h"
#include "base/stats.h"
#include "cli/run/preflight.h"
#include "comm/in_step.h"
#include "doctor/halving.h"
#include "doctor/machine/pairs.h"

namespace shardmark {
namespace {

// The members that are compared: nodes, or the ranks if there is only one node.
doctor::Members members_of(const std::vector<doctor::GroupSpeeds>& nodes,
                           const std::vector<doctor::RankFacts>& ranks) {
  doctor::Members members;
  if (nodes.size() == 1)
    for (int rank : nodes.front().ranks) members.push_back({fmt::format("rank {}", rank), {rank}});
  else
    for (const doctor::GroupSpeeds& node : nodes)
      members.push_back({ranks[static_cast<size_t>(node.ranks.front())].host, node.ranks});
  return members;
}

// "node3 on leaf1" if the switches are known, else the host alone.
std::string with_switch(const std::string& host, const doctor::Switches& switches) {
  return switches.empty() ? host : host + " on " + switches.leaf_of(host).name;
}

ColumnsOf<doctor::CutSpeed> cut_columns() {
  const auto number = [](const char* format, double value) {
    return Cell{fmt::format(fmt::runtime(format), value), value};
  };
  const auto rate = [=](double bytes_per_s) { return number("{:.3g}", bytes_per_s * 1e-9); };
  using Row = doctor::CutSpeed;
  return {{{"cut", "", false},
           [](const Row& row) {
             return Cell{row.cut.name, row.cut.name};
           }},
          {{"pairs"},
           [=](const Row& row) { return number("{:.0f}", static_cast<double>(row.cut.pairs.size())); }},
          {{"alone", "GB/s"}, [=](const Row& row) { return rate(row.alone); }},
          {{"together", "GB/s"}, [=](const Row& row) { return rate(row.together); }},
          {{"low", "GB/s"}, [=](const Row& row) { return rate(row.together_interval.low); }},
          {{"high", "GB/s"}, [=](const Row& row) { return rate(row.together_interval.high); }},
          {{"share", "%"}, [=](const Row& row) { return number("{:.0f}", 100 * row.share); }},
          {{"low", "%", true, false, "share"},
           [=](const Row& row) { return number("{:.0f}", 100 * row.share_interval.low); }},
          {{"high", "%", true, false, "share"},
           [=](const Row& row) { return number("{:.0f}", 100 * row.share_interval.high); }}};
}

Table cuts_table(const doctor::CutReport& report) {
  return make_table("cuts", "Across each cut, each way", cut_columns(), report.cuts);
}

std::string lines_of(const doctor::Verdicts& verdicts) {
  std::string text;
  for (const std::string& line : verdicts.wrong) text += "wrong: " + line + "\n";
  for (const std::string& line : verdicts.slow) text += "slow: " + line + "\n";
  for (const std::string& line : verdicts.notes) text += "note: " + line + "\n";
  return text;
}

nlohmann::ordered_json maps_json(const std::vector<doctor::Map>& maps) {
  auto all = nlohmann::ordered_json::array();
  for (const doctor::Map& map : maps) {
    auto values = nlohmann::ordered_json::array();
    for (int a = 0; a < map.speeds.size(); ++a)
      for (int b = a + 1; b < map.speeds.size(); ++b)
        if (const double speed = map.speeds.at(a, b); !std::isnan(speed))
          values.push_back({a, b, (map.inverse ? 1 / speed : speed) * map.scale});
    all.push_back({{"title", map.title}, {"unit", map.unit}, {"names", map.names}, {"pairs", values}});
  }
  return all;
}

}  // namespace

bool is_crowded(const std::vector<doctor::RankFacts>& ranks) {
  struct Machine {
    int64_t ranks = 0, cores = 0;
    std::set<std::string> seen;  // sets of processors already counted
  };
  std::map<std::string, Machine> machines;
  for (const doctor::RankFacts& rank : ranks) {
    Machine& machine = machines[rank.machine];
    ++machine.ranks;
    // Ranks that may run on the same processors share their cores, which count once. Unknown cores count as
    // none.
    if (machine.seen.insert(rank.cpu.allowed).second) machine.cores += std::max<int64_t>(rank.cpu.cores, 0);
  }
  return std::any_of(machines.begin(), machines.end(),
                     [](const auto& entry) { return entry.second.ranks > entry.second.cores; });
}

void check_links(const LinkTests& tests, const std::vector<doctor::RankFacts>& ranks) {
  size_t nodes = 0;
  for (const doctor::RankFacts& rank : ranks) {
    if (!tests.switches.empty()) tests.switches.above(rank.host);
    nodes += rank.local_rank == 0 ? 1 : 0;
  }
  if (const size_t members = nodes == 1 ? ranks.size() : nodes; tests.halve && members < 4)
    throw UsageError(
        fmt::format("--halve needs four nodes or more, or on one node four ranks; here are {}, of which "
                    "--pairs tells who is slow",
                    members));
}

std::vector<LinkReport::Test> LinkReport::tests() const {
  std::vector<Test> all = {{"pairs", "Pairs", "bandwidth and latency of all pairs", &pairs},
                           {"bisection", "Bisection", "bandwidth across the cuts of the machine", &cuts}};
  if (halving) all.push_back({"halving", "Halving", "halves down to slow nodes", &*halving});
  return all;
}

// Notes are not counted: they call nothing slow.
size_t LinkReport::num_bad() const {
  size_t count = 0;
  for (const Test& test : tests()) count += test.verdicts->wrong.size() + test.verdicts->slow.size();
  return count;
}

LinkReport measure_links(const WorldFlags& flags, const Ranks& ranks, const Preflight& ready,
                         const LinkTests& tests) {
  ranks.heartbeat().begin_point("the tests of links");
  machine::PairOptions options;
  options.transport = transport_for(flags, ready.device);
  options.device = ready.device;
  options.heartbeat = &ranks.heartbeat();
  LinkReport report;
  // All ranks measure the pairs. Then rank 0 runs the function below, which judges the pairs and decides on
  // all further exchanges, and the other ranks take part in each exchange (lead_exchanges). So only rank 0
  // has results.
  const auto measure_all = [&] {
    doctor::PairTest test = machine::measure_pairs(*ranks.world, options);
    machine::lead_exchanges(*ranks.world, options, [&](doctor::Exchange exchange) {
      test.crowded = is_crowded(ready.ranks);
      std::vector<std::string> hosts;
      hosts.reserve(ready.ranks.size());
      for (const doctor::RankFacts& rank : ready.ranks)
        hosts.push_back(with_switch(rank.host, tests.switches));
      report.pairs = doctor::report_pairs(test, hosts);
      const bool in_node = test.in_nodes.groups.size() == 1;
      const doctor::Phase& pairs = in_node ? test.in_nodes : test.across;
      // Exchanges across cuts are smaller if the usual pair would take more than 0.1 s, so that tests of
      // slow networks end soon.
      exchange.bytes = doctor::exchange_bytes(median(pairs.groups.front().bytes.measured()));
      doctor::Members members = members_of(test.in_nodes.groups, ready.ranks);
      std::vector<doctor::CutSpeed> cuts;
      for (const doctor::Cut& cut : doctor::cuts_of(members, in_node ? doctor::Switches() : tests.switches))
        cuts.push_back(doctor::measure_cut(members, cut, exchange));
      report.cuts = doctor::report_cuts(members, std::move(cuts), in_node, test.crowded);
      if (!tests.halve) return;
      const doctor::Halving found = doctor::halve(members, exchange, test.crowded);
      // cuts_of() looks switches up by the names of members, which are host names until here.
      for (doctor::Member& member : members)
        member.name = in_node ? member.name : with_switch(member.name, tests.switches);
      report.halving = doctor::report_halving(members, found, in_node);
    });
  };
  in_step(
      ranks.world->size(), [&] { return ranks.heartbeat().place(); }, measure_all);
  ranks.heartbeat().end_point();
  return report;
}

std::string to_text(const LinkReport& report) {
  std::string text;
  for (const LinkReport::Test& test : report.tests()) {
    text += fmt::format("{}: {}\n\n", test.title, test.verdicts->head);
    if (test.verdicts == &report.pairs)
      for (const doctor::Map& map : report.pairs.maps) text += to_text(map) + "\n";
    if (test.verdicts == &report.cuts && !report.cuts.cuts.empty())
      text += to_text(cuts_table(report.cuts)) + "\n";
    text += lines_of(*test.verdicts) + "\n";
  }
  return text;
}

void add_to(nlohmann::ordered_json& document, const LinkReport& report) {
  for (const LinkReport::Test& test : report.tests())
    document[test.key] = {{"head", test.verdicts->head},
                          {"wrong", test.verdicts->wrong},
                          {"slow", test.verdicts->slow},
                          {"notes", test.verdicts->notes}};
  document["pairs"]["maps"] = maps_json(report.pairs.maps);
  document["bisection"]["cuts"] = to_json(cuts_table(report.cuts))["rows"];
}

std::string to_html(const LinkReport& report) {
  std::vector<std::string> lines;
  for (const LinkReport::Test& test : report.tests())
    for (const auto* part : {&test.verdicts->wrong, &test.verdicts->slow, &test.verdicts->notes})
      lines.insert(lines.end(), part->begin(), part->end());
  return doctor::to_html(report.pairs.maps, lines, report.pairs.head);
}

}  // namespace shardmark

// The circle method (Kirkman 1847) and how much of it fits into a time budget; verdicts and maps of the
// results.
#include "doctor/pair_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "base/stats.h"
#include "base/units.h"

namespace shardmark::doctor {

int num_rounds(int n) { return n < 2 ? 0 : n - 1 + n % 2; }

int partner(int n, int round, int member) {
  // An odd number of members sits in the circle. In round r those meet whose numbers add up to r (mod
  // circle).
  const int circle = num_rounds(n);
  // If n is even, one member stays outside of the circle and meets the one that is left over.
  if (member == circle) return round * (circle + 1) / 2 % circle;
  const int other = ((round - member) % circle + circle) % circle;
  if (other != member) return other;
  return n % 2 == 0 ? circle : -1;
}

// The time is spent in this order. First all rounds twice with one message each, because a second pass tells
// faults from disturbances. Then more messages in each meeting, up to eight. Then more passes, as long as
// all of them take at most half of the time. If two passes do not fit, there is one. If one does not fit
// either, it has as many rounds as do.
Meetings plan_meetings(int num_rounds, double setup_s, double exchange_s, double budget_s) {
  constexpr int kMostRepeats = 8, kMostPasses = 10;
  Meetings plan;
  const auto takes = [&](int passes, int repeats) {
    return passes * num_rounds * (setup_s + (repeats + 1) * exchange_s);
  };
  plan.passes = takes(2, 1) <= budget_s ? 2 : 1;
  while (plan.repeats < kMostRepeats && takes(plan.passes, plan.repeats + 1) <= budget_s) ++plan.repeats;
  const bool all_fit = plan.passes > 1;
  while (all_fit && plan.passes < kMostPasses && takes(plan.passes + 1, plan.repeats) <= budget_s / 2)
    ++plan.passes;
  const double fit = takes(1, 1) > 0 ? num_rounds * budget_s / takes(1, 1) : num_rounds;
  const int count = all_fit ? num_rounds : std::clamp(static_cast<int>(fit + 1e-6), 1, num_rounds);
  for (int i = 0; i < count; ++i)
    plan.rounds.push_back(static_cast<int>(static_cast<int64_t>(i) * num_rounds / count));
  return plan;
}

namespace {

// How much slower counts as slow (pairs.h). Latencies vary more than bandwidths, and everything varies if
// ranks wait for cores.
struct Tolerances {
  double bytes = 0.2, messages = 0.5;
  // A single pair below this share of the median is reported.
  double pair = 0.6;
};
constexpr Tolerances kCrowded{0.7, 0.9, 0.2};
constexpr size_t kMostPairs = 5;

using Names = std::vector<std::string>;

double usual(const PairSpeeds& speeds) {
  const auto all = speeds.measured();
  return all.empty() ? NAN : median(all);
}

class Reporter {
 public:
  Reporter(const PairTest& test, const Names& hosts)
      : test_(test), hosts_(hosts), tolerances_(test.crowded ? kCrowded : Tolerances{}) {
    for (const GroupSpeeds& node : test.in_nodes.groups) {
      for (int rank : node.ranks) node_of_[rank] = static_cast<int>(nodes_.size());
      nodes_.push_back(hosts[static_cast<size_t>(node.ranks.front())]);
    }
  }

  PairReport report() {
    head();
    if (test_.across.num_rounds > 0) across_nodes();
    if (test_.in_nodes.num_rounds > 0) in_nodes();
    damaged();
    if (report_.slow.empty()) report_.notes.push_back("no node, rank or link is slow: " + slowest_text());
    if (test_.crowded)
      report_.notes.push_back(
          "more ranks than cores: only what is several times slower than the rest is reported");
    for (const Phase* phase : {&test_.in_nodes, &test_.across})
      if (static_cast<int>(phase->plan.rounds.size()) < phase->num_rounds)
        report_.notes.push_back(
            fmt::format("only a sample {}: {} of {} rounds fitted into the time",
                        phase == &test_.across ? "of pairs of nodes" : "of pairs in nodes",
                        phase->plan.rounds.size(), phase->num_rounds));
    return std::move(report_);
  }

 private:
  void head() {
    report_.head = fmt::format(
        "transport {}; exchanges (both ways at once) of 8 B and {} in disjoint pairs, all at the "
        "same time; {:.1f} s",
        test_.transport, format_bytes(static_cast<double>(test_.large_bytes)), test_.seconds);
  }

  void add_maps(const std::string& where, PairSpeeds bytes, PairSpeeds messages, const Names& names) {
    report_.maps.push_back({"Bandwidth " + where, "GB/s each way", std::move(bytes), names, 1e-9});
    report_.maps.push_back({"Latency " + where, "us", std::move(messages), names, 1e6, /*inverse=*/true});
  }

  // Judges nodes. The map shows the sum of the bandwidths of a pair's rails and the latency of the fastest
  // rail, because one slow rail does not make a slow node. Nodes are judged by the mean of the rails that
  // they have, because some may have fewer than others.
  void across_nodes() {
    const int size = static_cast<int>(nodes_.size());
    PairSpeeds bytes(size), messages(size), rails(size), means(size);
    for (const GroupSpeeds& rail : test_.across.groups)
      for (size_t i = 0; i < rail.ranks.size(); ++i)
        for (size_t j = i + 1; j < rail.ranks.size(); ++j) {
          const int a = static_cast<int>(i), b = static_cast<int>(j);
          if (std::isnan(rail.bytes.at(a, b))) continue;
          const int from = node_of_.at(rail.ranks[i]), to = node_of_.at(rail.ranks[j]);
          const bool is_first = std::isnan(bytes.at(from, to));
          bytes.set(from, to, rail.bytes.at(a, b) + (is_first ? 0 : bytes.at(from, to)));
          rails.set(from, to, is_first ? 1 : rails.at(from, to) + 1);
          means.set(from, to, bytes.at(from, to) / rails.at(from, to));
          messages.keep_best(from, to, rail.messages.at(a, b));
        }
    const auto named = judge(means, messages, nodes_, "all other nodes", "cable, port or switch");
    if (test_.across.groups.size() > 1)
      for (const GroupSpeeds& rail : test_.across.groups) judge_rail(rail, named);
    add_maps("between nodes", std::move(bytes), std::move(messages), nodes_);
  }

  // Finds a slow rank on a node whose other ranks are fast.
  void judge_rail(const GroupSpeeds& rail, const std::set<int>& named_nodes) {
    std::set<int> named;
    const auto name = [&](const SlowMember& slow, const std::string& how) {
      const int rank = rail.ranks[static_cast<size_t>(slow.member)];
      if (named_nodes.contains(node_of_.at(rank)) || !named.insert(rank).second) return;
      say(fmt::format("{} {}; look at its network adapter", rank_name(rank), how));
    };
    for (const SlowMember& slow : slow_members(rail.bytes, tolerances_.bytes))
      name(slow,
           fmt::format("is slow with its partners on all other nodes: {:.0f} % of what other pairs reach",
                       100 * slow.share));
    for (const SlowMember& slow : slow_members(rail.messages, tolerances_.messages))
      name(slow, fmt::format("answers its partners on other nodes late: {:.1f} x the latency of other pairs",
                             1 / slow.share));
  }

  void in_nodes() {
    std::set<size_t> explained;  // nodes in which a rank was named
    for (size_t i = 0; i < test_.in_nodes.groups.size(); ++i) {
      const GroupSpeeds& node = test_.in_nodes.groups[i];
      Names names;
      for (int rank : node.ranks) names.push_back(rank_name(rank));
      if (!judge(node.bytes, node.messages, names, "all other ranks of its node", "device, slot or binding")
               .empty())
        explained.insert(i);
    }
    slow_inside(explained);
    const auto& groups = test_.in_nodes.groups;
    const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a.ranks.size() < b.ranks.size();
    });
    PairSpeeds bytes(largest->bytes.size()), messages(largest->bytes.size());
    for (const GroupSpeeds& node : groups)  // of each pair, the slowest node's value
      for (int a = 0; a < node.bytes.size(); ++a)
        for (int b = a + 1; b < node.bytes.size(); ++b) {
          if (!(bytes.at(a, b) <= node.bytes.at(a, b))) bytes.set(a, b, node.bytes.at(a, b));
          if (!(messages.at(a, b) <= node.messages.at(a, b))) messages.set(a, b, node.messages.at(a, b));
        }
    Names names;
    for (size_t i = 0; i < largest->ranks.size(); ++i)
      names.push_back(nodes_.size() == 1 ? "rank " + std::to_string(largest->ranks[i])
                                         : "local " + std::to_string(i));
    add_maps(nodes_.size() == 1 ? "in the node" : "in nodes (of each pair, the slowest node)",
             std::move(bytes), std::move(messages), names);
  }

  // Finds a node all of whose ranks are slow among themselves.
  void slow_inside(const std::set<size_t>& explained) {
    std::vector<double> medians;
    for (const GroupSpeeds& node : test_.in_nodes.groups)
      if (const double speed = usual(node.bytes); !std::isnan(speed)) medians.push_back(speed);
    // Two nodes that differ do not tell which of them is slow.
    if (medians.size() < 3) return;
    const double all = median(medians);
    for (size_t i = 0; i < test_.in_nodes.groups.size(); ++i)
      if (const double share = usual(test_.in_nodes.groups[i].bytes) / all;
          share < (test_.crowded ? 0.3 : 0.75) && !explained.contains(i))
        say(fmt::format(
            "{} is slow internally: its ranks reach {:.0f} % of what those of other nodes do; look at its "
            "clocks, binding and other work on it",
            nodes_[i], 100 * share));
  }

  // Names the ranks that explain the messages that arrived with other values.
  void damaged() {
    std::vector<Damage> all;
    for (const Phase* phase : {&test_.in_nodes, &test_.across})
      for (const GroupSpeeds& group : phase->groups)
        all.insert(all.end(), group.damage.begin(), group.damage.end());
    for (const Blamed& one : blamed_for(std::move(all)))
      report_.wrong.push_back(fmt::format("{}; look at device, memory and network adapter of {}", one.words,
                                          rank_name(static_cast<int>(one.rank))));
  }

  // Names members that are slow with everyone, then single slow links. Returns the members that were named.
  std::set<int> judge(const PairSpeeds& bytes, const PairSpeeds& messages, const Names& names,
                      const std::string& others, const std::string& suspects) {
    std::set<int> named;
    const auto name = [&](int member) { return names[static_cast<size_t>(member)]; };
    const auto slow = slow_members(bytes, tolerances_.bytes);
    for (const SlowMember& one : slow) {
      named.insert(one.member);
      say(fmt::format("{} is slow with {}: {:.0f} % of what other pairs reach; look at {} of {}",
                      name(one.member), others, 100 * one.share, suspects, name(one.member)));
    }
    for (const SlowMember& one : slow_members(messages, tolerances_.messages))
      if (named.insert(one.member).second)
        say(fmt::format("{} answers {} late: {:.1f} x the latency of other pairs; look at {} of {}",
                        name(one.member), others, 1 / one.share, suspects, name(one.member)));
    for (const SlowPair& pair : slow_pairs(bytes, slow, kMostPairs)) {
      if (pair.share > tolerances_.pair) break;
      say(
          fmt::format("{} and {} reach {:.0f} % of the median of all pairs, though both are fast with "
                      "others; look at the path between them",
                      name(pair.a), name(pair.b), 100 * pair.share));
    }
    return named;
  }

  std::string slowest_text() const {
    double least = INFINITY;
    size_t num_pairs = 0;
    for (const Phase* phase : {&test_.in_nodes, &test_.across})
      for (const GroupSpeeds& group : phase->groups) {
        const double middle = usual(group.bytes);
        for (double speed : group.bytes.measured()) {
          least = std::min(least, speed / middle);
          ++num_pairs;
        }
      }
    if (num_pairs == 0) return "there is no pair";
    if (num_pairs == 1) return "there is one pair, and none to compare it with";
    return fmt::format("the slowest pair reaches {:.0f} % of the median bandwidth", 100 * least);
  }

  std::string rank_name(int rank) const {
    return nodes_.size() == 1 ? fmt::format("rank {}", rank)
                              : fmt::format("rank {} ({})", rank, hosts_[static_cast<size_t>(rank)]);
  }
  void say(const std::string& verdict) { report_.slow.push_back(verdict); }

  const PairTest& test_;
  const Names& hosts_;
  Tolerances tolerances_;
  Names nodes_;
  std::map<int, int> node_of_;  // rank -> index into nodes_
  PairReport report_;
};

}  // namespace

std::vector<GroupSpeeds> groups_from(const std::vector<Witness>& world, const std::vector<int>& rounds,
                                     int64_t large_bytes) {
  std::map<int, GroupSpeeds> groups;
  for (size_t rank = 0; rank < world.size(); ++rank) {
    const Witness& one = world[rank];
    GroupSpeeds& group = groups[one.group];
    if (group.ranks.empty())
      group = {std::vector<int>(static_cast<size_t>(one.size)), PairSpeeds(one.size), PairSpeeds(one.size)};
    group.ranks[static_cast<size_t>(one.member)] = static_cast<int>(rank);
    for (size_t i = 0; i < rounds.size(); ++i) {
      if (std::isnan(one.meetings[i].large_s)) continue;
      const int other = partner(one.size, rounds[i], one.member);
      // Both ranks timed the exchange. The slower time includes waiting for the partner, so the faster one
      // counts.
      group.messages.keep_best(one.member, other, 1 / one.meetings[i].message_s);
      group.bytes.keep_best(one.member, other, static_cast<double>(large_bytes) / one.meetings[i].large_s);
      if (one.meetings[i].wrong > 0)  // members, until the ranks of all are known
        group.damage.push_back({other, one.member, static_cast<int64_t>(one.meetings[i].wrong)});
    }
  }
  std::vector<GroupSpeeds> all;
  for (auto& [key, group] : groups) {
    for (Damage& one : group.damage) {
      one.sender = group.ranks[static_cast<size_t>(one.sender)];
      one.receiver = group.ranks[static_cast<size_t>(one.receiver)];
    }
    all.push_back(std::move(group));
  }
  return all;
}

PairReport report_pairs(const PairTest& test, const Names& hosts) { return Reporter(test, hosts).report(); }

}  // namespace shardmark::doctor

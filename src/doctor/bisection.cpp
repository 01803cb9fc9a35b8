// Bisection bandwidth: what a machine carries from one half to the other while every node of one half
// exchanges with a partner in the other half. All pairs together share what lies between the halves (a
// switch, its uplinks, the link between sockets), while a pair that is measured alone has it for itself. So
// the ratio of both shows whether there are too few links (oversubscription), as opposed to slow links, which
// also slow a pair alone. The slowest pair's time counts, because a collective ends with its slowest rank.
//
// Source: the effective bisection bandwidth of Hoefler, Schneider and Lumsdaine, "Multistage switches are not
// crossbars", IEEE Cluster 2008, for chosen halves instead of random ones.
#include "doctor/bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.h"

namespace shardmark::doctor {
namespace {

// With 12 repeats the 95 % interval of the median leaves out two at each end.
constexpr int kRepeats = 12;
// Pairs that are measured alone; the duration of the test grows with their number.
constexpr size_t kMostAlone = 16;
// A cut that carries less than this share of the sum of its links is reported.
constexpr double kShare = 0.8, kCrowdedShare = 0.5;

constexpr const char* kHalves = "bisection ";

// `count` of the values, evenly spread.
template <class Value>
std::vector<Value> spread(const std::vector<Value>& all, size_t count) {
  std::vector<Value> some;
  for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

Cut cut_between(std::string name, Group one, Group other) {
  const size_t count = std::min(one.size(), other.size());
  one = spread(one, count);
  other = spread(other, count);
  Cut cut{std::move(name), {}};
  for (size_t i = 0; i < count; ++i) cut.pairs.emplace_back(one[i], other[i]);
  return cut;
}

Receivers across(const Members& members, const std::vector<std::pair<int, int>>& pairs) {
  Receivers to = nobody(members);
  for (const auto& [a, b] : pairs) {
    add_sending(to, members, a, b);
    add_sending(to, members, b, a);
  }
  return to;
}

std::vector<double> divided(std::vector<double> values, const std::vector<double>& by) {
  for (size_t i = 0; i < values.size(); ++i) values[i] /= by[i];
  return values;
}

// Returns the line about a cut, and sets `is_slow`. A cut is slow only if the whole interval of its share
// lies below the limit. If only the median does, the line says that this is in doubt.
std::string judged(const Members& members, const CutSpeed& speed, double least, bool& is_slow) {
  const auto& [a, b] = speed.slowest;
  const Interval& range = speed.together_interval;
  const std::string carries = fmt::format(
      "{}: {:.3g} GB/s each way (95 % interval {:.3g} .. {:.3g}), {:.0f} % of the sum of its links",
      speed.cut.name, speed.together * 1e-9, range.low * 1e-9, range.high * 1e-9, 100 * speed.share);
  is_slow = speed.share_interval.high < least;
  if (!is_slow) return carries + (speed.share < least ? ", in doubt: repeats differ too much" : "");
  // The slowest pair is nearly as slow alone, so the cut does not slow it. The test of pairs names it.
  if (speed.stretch * least < 1) {
    is_slow = false;
    return carries + fmt::format(", because {} and {} are slow alone, too",
                                 members[static_cast<size_t>(a)].name, members[static_cast<size_t>(b)].name);
  }
  return carries +
         fmt::format(
             " (oversubscribed {:.1f} : 1); look at what all of them share: switches and the links between "
             "these",
             1 / speed.share);
}

}  // namespace

std::vector<Cut> cuts_of(const Members& members, const Switches& switches) {
  const int size = static_cast<int>(members.size());
  if (size < 4) return {};
  const auto range = [](int first, int last) {
    Group group;
    for (int i = first; i < last; ++i) group.push_back(i);
    return group;
  };
  std::map<Group, size_t> known;  // side of a cut -> index in `cuts`
  std::vector<Cut> cuts;
  const auto add = [&](const std::string& name, const Group& one, const Group& other) {
    if (one.empty() || other.empty()) return;
    if (const auto same = known.find(one); same != known.end()) {
      std::string& first_name = cuts[same->second].name;
      if (first_name.starts_with(kHalves)) first_name = fmt::format("bisection, {}", name);
      return;
    }
    known.insert({{one, cuts.size()}, {other, cuts.size()}});
    cuts.push_back(cut_between(name, one, other));
  };
  const Group first = range(0, size / 2), last = range((size + 1) / 2, size);
  add(fmt::format("{}{} | {}", kHalves, group_text(members, first), group_text(members, last)), first, last);
  std::vector<std::set<int>> above(members.size());
  for (int i = 0; i < size && !switches.empty(); ++i) {
    const auto path = switches.above(members[static_cast<size_t>(i)].name);
    above[static_cast<size_t>(i)] = {path.begin(), path.end()};
  }
  for (size_t at = 0; at < switches.all().size(); ++at) {
    Group below, rest;
    for (int i = 0; i < size; ++i)
      (above[static_cast<size_t>(i)].contains(static_cast<int>(at)) ? below : rest).push_back(i);
    add(switches.all()[at].name + " | the rest", below, rest);
  }
  return cuts;
}

CutSpeed measure_cut(const Members& members, const Cut& cut, const Exchange& exchange) {
  CutSpeed speed{.cut = cut, .bytes = exchange.bytes};
  const double bytes = static_cast<double>(exchange.bytes) * num_rails(members);
  const auto num_pairs = static_cast<double>(cut.pairs.size());
  // All pairs exchange at once. The cut's bandwidth in a repeat is what all pairs carry, divided by the time
  // of the slowest pair of that repeat. The slowest pair of the whole measurement, by its median, is kept
  // for the verdict.
  const Times times = exchange(across(members, cut.pairs), kRepeats);
  std::vector<double> together(kRepeats, INFINITY);
  double longest_s = 0;
  for (const auto& pair : cut.pairs) {
    const auto seconds = slowest(times, members, {pair.first, pair.second});
    if (const double usual = median(seconds); usual > longest_s) {
      longest_s = usual;
      speed.slowest = pair;
    }
    for (size_t i = 0; i < seconds.size(); ++i)
      together[i] = std::min(together[i], num_pairs * bytes / seconds[i]);
  }
  // Then pairs exchange one after the other while all others rest. The sum over the pairs that are measured
  // is scaled to all pairs. The slowest pair is always measured alone, if need be after the others, because
  // its stretch decides what the verdict says.
  const auto alone_s = [&](const std::pair<int, int>& pair) {
    return slowest(exchange(across(members, {pair}), kRepeats), members, {pair.first, pair.second});
  };
  speed.num_alone = std::min(kMostAlone, cut.pairs.size());
  std::vector<double> alone(kRepeats, 0);
  for (const auto& pair : spread(cut.pairs, speed.num_alone)) {
    const auto seconds = alone_s(pair);
    for (size_t i = 0; i < seconds.size(); ++i)
      alone[i] += num_pairs / static_cast<double>(speed.num_alone) * bytes / seconds[i];
    if (pair == speed.slowest) speed.stretch = longest_s / median(seconds);
  }
  if (speed.stretch == 0) speed.stretch = longest_s / median(alone_s(speed.slowest));
  speed.alone = median(alone);
  speed.together = median(together);
  speed.together_interval = median_interval(together);
  const auto shares = divided(together, alone);
  speed.share = median(shares);
  speed.share_interval = median_interval(shares);
  return speed;
}

CutReport report_cuts(const Members& members, std::vector<CutSpeed> cuts, bool in_node, bool crowded) {
  CutReport report;
  if (!cuts.empty())
    report.head = fmt::format("{} over all pairs at once, both ways, and over each pair alone; {} repeats",
                              format_bytes(static_cast<double>(cuts.front().bytes)), kRepeats);
  for (const CutSpeed& speed : cuts) {
    bool is_slow = false;
    const std::string line = judged(members, speed, crowded ? kCrowdedShare : kShare, is_slow);
    (is_slow && !in_node ? report.slow : report.notes).push_back(line);
    if (speed.num_alone < speed.cut.pairs.size())
      report.notes.push_back(
          fmt::format("{}: {} of {} pairs, evenly spread, were measured alone; the sum is for all",
                      speed.cut.name, speed.num_alone, speed.cut.pairs.size()));
  }
  if (cuts.empty())
    report.notes.push_back("no bisection among fewer than four: a single pair would cross it");
  else if (members.size() % 2 == 1)
    report.notes.push_back(
        fmt::format("{} are an odd number: {}, in the middle, rests in the bisection of the halves",
                    members.size(), members[members.size() / 2].name));
  if (in_node && !cuts.empty())
    report.notes.push_back(
        "these are ranks of one node, which share its memory and buses: no cut of it is called slow");
  report.cuts = std::move(cuts);
  return report;
}

}  // namespace shardmark::doctor

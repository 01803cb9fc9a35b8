// Which ranks compute longer than the others, and since when: see sustained.h.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stats/sustained.h"

namespace shardmark {
namespace {

constexpr double kSpellExcess = 0.05;  // as of slow ranks in a short point
constexpr double kSpellLevel = 0.001;  // chance that some rank of equal ones is said to have changed
constexpr size_t kLeastValues = 6;     // for an interval of a median

// Returns [rank][interval]: the rank's time / the median of the other ranks' times - 1. The rank itself is
// left out of the median, because with few ranks a slow one would raise what it is held against. The times
// of an interval are sorted once; other(i) then skips the rank's own place, so nothing is sorted anew for
// each rank.
std::vector<std::vector<double>> excesses(const std::vector<std::vector<double>>& compute) {
  const size_t ranks = compute.size();
  auto over = compute;
  std::vector<double> sorted(ranks);
  for (size_t k = 0; k < compute.front().size(); ++k) {
    for (size_t rank = 0; rank < ranks; ++rank) sorted[rank] = compute[rank][k];
    std::sort(sorted.begin(), sorted.end());
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto own = static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), compute[rank][k]) -
                                           sorted.begin());
      const auto other = [&](size_t i) { return sorted[i < own ? i : i + 1]; };  // without its own
      const double median = (other((ranks - 2) / 2) + other((ranks - 1) / 2)) / 2;
      over[rank][k] = compute[rank][k] / median - 1;
    }
  }
  return over;
}

// The whole 95 % interval of the median excess must lie above the threshold.
bool is_slow(const std::vector<double>& over) {
  return over.size() >= kLeastValues && median_interval(over).low > kSpellExcess;
}

// Whether a rank is slow, and in which part of the run. A change counts if the test finds it at `level` and
// the rank is slow on exactly one side of it: the spell is then that side. If it is slow on both sides or
// on neither, the run is judged as a whole.
std::optional<SlowSpell> spell_of(const std::vector<double>& over, const std::vector<double>& ends_s,
                                  double level) {
  SlowSpell spell;
  const auto num_slow = std::count_if(over.begin(), over.end(), [](double x) { return x > kSpellExcess; });
  // Both rules need at least 6 slow intervals. This check comes first because most ranks are never slow,
  // and the search for a change takes most of the time.
  if (num_slow < static_cast<std::ptrdiff_t>(kLeastValues)) return {};
  spell.share = static_cast<double>(num_slow) / static_cast<double>(over.size());
  spell.until_s = ends_s.back();
  if (const auto change = change_point(over, kLeastValues); change && change->p <= level) {
    const auto middle = over.begin() + static_cast<std::ptrdiff_t>(change->first);
    const std::vector<double> before(over.begin(), middle), after(middle, over.end());
    if (is_slow(before) != is_slow(after)) {
      (change->shift > 0 ? spell.since_s : spell.until_s) = ends_s[change->first - 1];
      spell.excess = median(change->shift > 0 ? after : before);
      return spell;
    }
  }
  if (!is_slow(over)) return {};
  spell.excess = median(over);
  return spell;
}

// If all ranks of a node are slow (two or more, and there are other nodes), the reason is likely the node.
// One spell of the node, with the medians of its ranks, then replaces the spells of the ranks.
void join_nodes(std::vector<SlowSpell>& spells, const std::vector<std::string>& hosts) {
  std::map<std::string, size_t> ranks_of;
  for (const auto& host : hosts) ++ranks_of[host];
  std::map<std::string, std::vector<SlowSpell>> slow_of;
  for (const auto& spell : spells) slow_of[spell.host].push_back(spell);
  for (const auto& [host, slow] : slow_of) {
    if (ranks_of.size() < 2 || slow.size() < 2 || slow.size() != ranks_of[host]) continue;
    const auto middle = [&](double SlowSpell::*member) {
      std::vector<double> values;
      for (const auto& spell : slow) values.push_back(spell.*member);
      return median(std::move(values));
    };
    const SlowSpell node{-1,
                         host,
                         middle(&SlowSpell::excess),
                         middle(&SlowSpell::share),
                         middle(&SlowSpell::since_s),
                         middle(&SlowSpell::until_s)};
    std::erase_if(spells, [&](const SlowSpell& spell) { return spell.host == node.host; });
    spells.push_back(node);
  }
}

}  // namespace

std::vector<SlowSpell> slow_spells(const std::vector<std::vector<double>>& compute,
                                   const std::vector<double>& ends_s, const std::vector<std::string>& hosts) {
  if (compute.size() < 2 || ends_s.empty()) return {};
  for (const auto& rank : compute)
    if (rank.size() != ends_s.size() ||
        !std::all_of(rank.begin(), rank.end(), [](double s) { return std::isfinite(s) && s > 0; }))
      return {};
  const auto over = excesses(compute);
  std::vector<SlowSpell> spells;
  for (size_t rank = 0; rank < over.size(); ++rank)
    // The level is divided by the number of ranks (Bonferroni), as each rank is another chance of a false
    // alarm.
    if (auto spell = spell_of(over[rank], ends_s, kSpellLevel / static_cast<double>(over.size()))) {
      spell->rank = static_cast<int64_t>(rank);
      if (rank < hosts.size()) spell->host = hosts[rank];
      spells.push_back(std::move(*spell));
    }
  join_nodes(spells, hosts);
  return spells;
}

}  // namespace shardmark

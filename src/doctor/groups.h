// Groups of ranks for checks: by node, or by a value that they share.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "doctor/checks.h"

namespace shardmark::doctor {

using RankGroup = std::vector<const RankFacts*>;

template <class Key>
std::map<Key, RankGroup> grouped(const World& world, const std::function<Key(const RankFacts&)>& key) {
  std::map<Key, RankGroup> groups;
  for (const RankFacts& rank : world) groups[key(rank)].push_back(&rank);
  return groups;
}

// The ranks of each node. A node is one running kernel under one host name.
inline std::map<std::string, RankGroup> nodes_of(const World& world) {
  return grouped<std::string>(world, [](const RankFacts& rank) { return rank.host + "\n" + rank.machine; });
}

// Collects the ranks that have a trouble, and the smallest and largest of a number, so that many ranks make
// one finding.
class Affected {
 public:
  void add(const RankFacts& rank, int64_t number = 0) {
    if (ranks_.empty() || number < least_) least_ = number;
    if (ranks_.empty() || number > most_) most_ = number;
    ranks_.push_back(static_cast<int>(rank.rank));
    if (hosts_.insert(rank.host).second) in_order_.push_back(rank.host);
  }
  void add(const RankGroup& ranks, int64_t number = 0) {
    for (const RankFacts* rank : ranks) add(*rank, number);
  }
  bool any() const { return !ranks_.empty(); }
  int64_t least() const { return least_; }
  int64_t most() const { return most_; }
  std::string hosts() const { return names_text(in_order_); }
  void report(Findings& findings, Severity severity, const std::string& what, const std::string& fix,
              bool is_of_job = false) const {
    if (any()) findings.push_back({severity, ranks_, what, fix, {}, is_of_job});
  }

 private:
  Numbers ranks_;
  std::set<std::string> hosts_;
  std::vector<std::string> in_order_;
  int64_t least_ = 0, most_ = 0;
};

}  // namespace shardmark::doctor

// Halving: if all nodes together are slow, which of them is it? The nodes of a group exchange across the
// group's two halves, all pairs at once (the first step of a recursive-halving all-reduce). A group is as
// slow as its slowest node, and slower if what its halves share is too narrow. So a slow group is split, and
// its halves are measured at the same time. A half that is not slow is cleared with all of its nodes. Slow
// groups are disjoint, so several are split in the same run: the number of runs grows with the logarithm of
// the number of nodes, and hardly with the number of slow ones. A single node exchanges with a cleared one.
//
// This is group testing by adaptive splitting: Dorfman, Ann. Math. Stat. 14(4), 1943; Hwang, JASA 67(339),
// 1972.
//
// How certain it is: a group is split if most repeats take longer than the limit, 1.15 x the usual pair's
// time (2 x if ranks wait for cores). A wrong split costs only runs. A verdict needs 17 of 20 repeats. By the
// sign test, for any distribution of noise: if a node's median is below the limit, so many repeats are above
// it with a probability of at most 0.13 %, provided that the repeats are independent.
#include "doctor/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/units.h"

namespace shardmark::doctor {
namespace {

constexpr int kTimes = 20, kSure = 17;
constexpr double kWrongly = 0.0013;                 // P(Binomial(20, 1/2) >= 17)
constexpr double kLimit = 1.15, kCrowdedLimit = 2;  // crowded: ranks wait for cores, too

struct Suspect {
  Group members;
  std::vector<double> seconds;  // by repeat
};

class Halver {
 public:
  Halver(const Members& members, const Exchange& exchange, bool crowded)
      : members_(members), exchange_(exchange) {
    found_.bytes = exchange.bytes;
    found_.limit = crowded ? kCrowdedLimit : kLimit;
  }

  // All members form the first suspect. Each split() replaces the suspects by those of their halves that are
  // still slow, until no group is left.
  Halving find() {
    ENSURE(members_.size() >= 4, "halving needs a pair beside the slow one, and one more");
    Group all(members_.size());
    std::iota(all.begin(), all.end(), 0);
    measure_usual_pair(all);
    suspects_ = {{all, run({all}).front()}};
    found_.whole = median(suspects_.front().seconds) / usual_.front();
    std::erase_if(suspects_, [&](const Suspect& one) { return !is_slow(one.seconds); });
    while (!suspects_.empty()) split();
    return std::move(found_);
  }

 private:
  struct Half {
    size_t parent;
    Group members, measured;  // with a partner if there is one member
    std::vector<double> seconds = {};
  };

  // The number of repeats in which a takes longer than limit x b.
  int num_beyond(const std::vector<double>& a, const std::vector<double>& b) const {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] > found_.limit * b[i] ? 1 : 0;
    return count;
  }
  bool is_slow(const std::vector<double>& seconds) const { return 2 * num_beyond(seconds, usual_) > kTimes; }

  // The usual pair's time is the lower quartile of pairs that exchange at the same time: a quarter of them is
  // assumed to be healthy.
  void measure_usual_pair(const Group& all) {
    std::vector<Group> pairs;
    for (size_t i = 0; i + 1 < all.size(); i += 2) pairs.push_back({all[i], all[i + 1]});
    std::vector<double> medians;
    for (const auto& seconds : run(pairs)) medians.push_back(median(seconds));
    std::sort(medians.begin(), medians.end());
    usual_.assign(kTimes, medians[(medians.size() - 1) / 4]);
  }

  // Seconds, [group][repeat]. All groups exchange at the same time.
  std::vector<std::vector<double>> run(const std::vector<Group>& groups) {
    Receivers to = nobody(members_);
    for (const Group& group : groups) {
      // With an odd number of nodes, the last node joins the last pair: the three send in a circle.
      const size_t half = group.size() / 2, odd = group.size() % 2;
      for (size_t i = 0; i < half; ++i) add_sending(to, members_, group[i], group[half + i]);
      for (size_t i = 0; i + odd < half; ++i) add_sending(to, members_, group[half + i], group[i]);
      if (odd == 0) continue;
      add_sending(to, members_, group[2 * half - 1], group[2 * half]);
      add_sending(to, members_, group[2 * half], group[half - 1]);
    }
    ++found_.runs;
    const Times times = exchange_(to, kTimes);
    std::vector<std::vector<double>> seconds;
    for (const Group& group : groups) seconds.push_back(slowest(times, members_, group));
    return seconds;
  }

  // The halves of all slow groups. A group waits if too few cleared nodes are left to be partners of its
  // single nodes.
  std::vector<Half> halves() const {
    std::vector<Half> all;
    size_t partners = 0;
    for (size_t i = 0; i < suspects_.size(); ++i) {
      const Group& whole = suspects_[i].members;
      // Three members are split into two and one, and two into one and one. So a group of three needs one
      // partner, and a group of two needs two.
      const size_t needed = whole.size() > 3 ? 0 : 4 - whole.size();
      if (partners + needed > cleared_.size()) continue;
      const auto middle = whole.begin() + static_cast<std::ptrdiff_t>((whole.size() + 1) / 2);
      for (const Group& half : {Group(whole.begin(), middle), Group(middle, whole.end())}) {
        Half one{i, half, half};
        if (half.size() == 1) one.measured.push_back(cleared_[partners++]);
        all.push_back(std::move(one));
      }
    }
    return all;
  }

  void split() {
    std::vector<Half> all = halves();
    if (all.empty()) {
      for (const Suspect& one : suspects_) found_.unresolved.push_back(one.members);
      suspects_.clear();
      return;
    }
    measure(all);
    if (found_.halves_disturb) return suspects_.clear();
    std::vector<Suspect> next;
    std::vector<bool> is_split(suspects_.size(), false);
    for (size_t i = 0; i < all.size(); i += 2) {
      judge(suspects_[all[i].parent], all[i], all[i + 1], next);
      is_split[all[i].parent] = true;
    }
    for (size_t i = 0; i < suspects_.size(); ++i)
      if (!is_split[i]) next.push_back(suspects_[i]);
    suspects_ = std::move(next);
  }

  // Measures all halves at the same time. The first time that both halves of the only group are slow, they
  // are also measured one after the other, to find out whether they slow each other.
  void measure(std::vector<Half>& all) {
    std::vector<Group> groups;
    for (const Half& half : all) groups.push_back(half.measured);
    auto seconds = run(groups);
    for (size_t i = 0; i < all.size(); ++i) all[i].seconds = seconds[i];
    const auto slow = [&](const Half& half) { return is_slow(half.seconds); };
    if (was_in_turn_ || all.size() > 2 || !std::all_of(all.begin(), all.end(), slow)) return;
    was_in_turn_ = true;
    int disturbed = 0;
    for (Half& half : all) {
      const auto in_turn = run({half.measured}).front();
      disturbed += num_beyond(half.seconds, in_turn) >= kSure ? 1 : 0;
      half.seconds = in_turn;
    }
    found_.halves_disturb = disturbed > 0 && std::none_of(all.begin(), all.end(), slow);
    if (found_.halves_disturb) found_.together.push_back(suspects_[all.front().parent].members);
  }

  void judge(const Suspect& whole, const Half& first, const Half& second, std::vector<Suspect>& next) {
    bool any = false;
    for (const Half* half : {&first, &second}) {
      if (!is_slow(half->seconds)) {
        cleared_.insert(cleared_.end(), half->members.begin(), half->members.end());
        continue;
      }
      any = true;
      if (half->members.size() == 1)
        name(*half);
      else
        next.push_back({half->members, half->seconds});
    }
    // Neither half is slow, but the whole group was, and surely slower than its slower half: then what the
    // halves share is slow.
    std::vector<double> slower = first.seconds;
    for (size_t i = 0; i < slower.size(); ++i) slower[i] = std::max(slower[i], second.seconds[i]);
    if (!any && num_beyond(whole.seconds, slower) >= kSure) found_.together.push_back(whole.members);
  }

  // Names the only member of the half if enough repeats are beyond the limit. If not, it is neither named
  // nor cleared: it cannot serve as a partner.
  void name(const Half& half) {
    const int beyond = num_beyond(half.seconds, usual_);
    if (beyond < kSure) return;
    const Interval range = median_interval(half.seconds);
    const double usual = usual_.front();
    found_.nodes.push_back({half.members.front(),
                            half.measured.back(),
                            median(half.seconds) / usual,
                            {range.low / usual, range.high / usual},
                            beyond});
  }

  const Members& members_;
  const Exchange& exchange_;
  std::vector<double> usual_;  // the usual pair's time, for each repeat
  std::vector<Suspect> suspects_;
  Group cleared_;
  bool was_in_turn_ = false;
  Halving found_;
};

}  // namespace

Halving halve(const Members& members, const Exchange& exchange, bool crowded) {
  return Halver(members, exchange, crowded).find();
}

Verdicts report_halving(const Members& members, const Halving& found, bool in_node) {
  const auto name = [&](int member) { return members[static_cast<size_t>(member)].name; };
  Verdicts report;
  report.head = fmt::format(
      "groups exchange {} across their halves, disjoint ones at the same time; {} runs of {} repeats",
      format_bytes(static_cast<double>(found.bytes)), found.runs, kTimes);
  for (const SlowNode& one : found.nodes)
    report.slow.push_back(
        fmt::format("{} makes groups slow: with {} it takes {:.2f} x as long as the usual pair (95 % "
                    "interval {:.2f} .. {:.2f}; {} of {} "
                    "repeats beyond {} x); look at its cable, port, clocks and other work on it",
                    name(one.member), name(one.partner), one.times_as_long, one.interval.low,
                    one.interval.high, one.beyond, kTimes, found.limit));
  for (const Group& group : found.together)
    (in_node ? report.notes : report.slow)
        .push_back(
            fmt::format("{} are slow only together, {}; look at what the halves share: a switch, its uplinks",
                        group_text(members, group),
                        found.halves_disturb ? "as both halves are at the same time, but not in turn"
                                             : "and neither half is"));
  for (const Group& group : found.unresolved)
    report.slow.push_back(
        fmt::format("{} are slow, and no other is known to be fast: who of them cannot be told",
                    group_text(members, group)));
  const auto whole =
      fmt::format("{} of them together take {:.2f} x as long as the usual pair, where {} x and more is slow",
                  members.size(), found.whole, found.limit);
  report.notes.push_back(report.slow.empty() ? whole + ": no node makes them slow" : whole);
  if (!found.nodes.empty())
    report.notes.push_back(
        fmt::format("a node within {} x is named in at most {:.2f} % of such tests, by the sign test",
                    found.limit, 100 * kWrongly));
  return report;
}

}  // namespace shardmark::doctor

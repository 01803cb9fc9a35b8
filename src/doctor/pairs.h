// The speeds of pairs, and the verdict who is slow: a pair, or a member with all of its partners.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace shardmark::doctor {

// A symmetric matrix of speeds; NaN if a pair was not measured. More is better.
class PairSpeeds {
 public:
  explicit PairSpeeds(int size)
      : size_(size), values_(static_cast<size_t>(size) * static_cast<size_t>(size), NAN) {}
  int size() const { return size_; }
  double at(int a, int b) const { return values_[index(a, b)]; }
  void set(int a, int b, double speed) { values_[index(a, b)] = values_[index(b, a)] = speed; }
  void keep_best(int a, int b, double speed) {
    if (!(at(a, b) >= speed)) set(a, b, speed);
  }
  std::vector<double> measured() const;  // each pair once
  std::vector<double> measured_of(int member) const;

 private:
  size_t index(int a, int b) const {
    return static_cast<size_t>(a) * static_cast<size_t>(size_) + static_cast<size_t>(b);
  }
  int size_;
  std::vector<double> values_;
};

struct SlowMember {
  int member;
  // Median speed of its pairs relative to the median of the pairs without it.
  double share;
};
// Finds members that are slow with all of their partners, the slowest first. A member is named if the median
// of its pairs is below the median of the pairs without it by more than tolerance + 0.4 / n (a few pairs tell
// little) and by more than five standard errors, and if three quarters of its pairs are slow. Nobody is named
// among fewer than 3 members, or if half of the members are slow.
std::vector<SlowMember> slow_members(const PairSpeeds& speeds, double tolerance = 0.2);

struct SlowPair {
  int a, b;
  double share;  // of the median of all pairs
};
// The slowest pairs first, at most `most`: those below 60 % of the median of all pairs, neither of whose
// members is named already.
std::vector<SlowPair> slow_pairs(const PairSpeeds& speeds, const std::vector<SlowMember>& named, size_t most);

}  // namespace shardmark::doctor

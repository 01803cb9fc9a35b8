// Speeds of pairs, and who is slow: a pair, or a member with all of its partners.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace shardmark::doctor {

// Symmetric; a NaN where a pair was not measured. More is better.
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
  double share;  // of what pairs without it reach, median to median
};
// Those that are slow with all of their partners, the slowest first. A member is named when the median of its
// pairs lies below that of the pairs without it by more than the tolerance + 0.4 / n (few pairs tell little)
// and by more than five standard errors, and three quarters of its pairs are slow. Nobody among fewer than 3,
// or where a half is slow.
std::vector<SlowMember> slow_members(const PairSpeeds& speeds, double tolerance = 0.2);

struct SlowPair {
  int a, b;
  double share;  // of the median of all pairs
};
// The slowest pairs first: those below 60 % of the median of all whose members are not named already; at most
// `most`.
std::vector<SlowPair> slow_pairs(const PairSpeeds& speeds, const std::vector<SlowMember>& named, size_t most);

}  // namespace shardmark::doctor

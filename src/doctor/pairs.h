// The speeds of pairs, the verdict who is slow (a pair, or a member with all of its partners), and maps of
// the speeds: as letters for a terminal, or as an HTML page that loads nothing.
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

// The speeds of pairs as they are shown.
struct Map {
  std::string title;  // "Bandwidth between nodes, 4 MiB"
  std::string unit;   // "GB/s"
  PairSpeeds speeds;
  std::vector<std::string> names;  // of the members
  // Multiplies a speed (more is better) to give the unit; with `inverse` it multiplies 1 / speed.
  double scale = 1;
  bool inverse = false;  // shown as 1 / speed: a latency
};

// Has a row and a column for each member, at most 40. With more members neighbours are grouped, and a group
// shows its slowest pair. Cells are tenths of the median of all pairs; a legend below the map explains them.
std::string to_text(const Map& map);

// A complete page. Every pair is a coloured cell with its value (up to 160 members; grouped beyond that), and
// the verdicts stand above.
std::string to_html(const std::vector<Map>& maps, const std::vector<std::string>& verdicts,
                    const std::string& head);

// A speed as it is shown, with its unit.
std::string value_text(const Map& map, double speed);

}  // namespace shardmark::doctor

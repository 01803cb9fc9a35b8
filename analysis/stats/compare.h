// Whether a point became faster or slower between two sets of launches. Definitions: analysis/README.md.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/frame/launches.h"
#include "base/stats.h"

namespace shardmark {

enum class Judgement { same, faster, slower, ambiguous };
std::string_view to_text(Judgement verdict);  // "SAME"

// How it was decided: by the rank test; by Student's t on the spread of launches, where launches are too few
// for ranks; by the reference of a baseline; or not at all.
enum class Basis { ranks, spread, reference, none };

struct Comparison {
  double old_s, new_s;  // medians over launches
  size_t num_old, num_new;
  double difference;  // new_s / old_s - 1
  Interval interval;  // 95 %, of the shift from old to new launches, relative
  double spread;      // standard deviation of a launch, relative; NaN where too few launches tell
  double p;           // after Holm's correction over all points
  Basis basis;
  Judgement verdict;
};

// What is compared: both sides have at least one launch.
struct LaunchPair {
  std::vector<double> old_s, new_s;
  std::optional<Reference> reference = {};
};

inline constexpr double kFamilyLevel = 0.05;  // chance of one or more false alarms over all points
inline constexpr double kPower = 0.8;
inline constexpr double kDefaultMargin = 0.05;
inline constexpr size_t kLeastLaunches = 3;  // a side needs for SAME, and one side for anything
// Sampling stops when a launch's median is known to within its `precision` (half-width of a 95 % interval):
// launches that agree better do so by chance.
inline constexpr double kLeastSpread = Sampling{}.precision / 2;

// margin: relative differences below it do not matter.
std::vector<Comparison> compare_launches(const std::vector<LaunchPair>& pairs, double margin);

// For each pair the relative slow-down that its launches would have shown with 80 % power, had they the
// spread that was seen; NaN where no slow-down could be shown.
std::vector<double> smallest_slowdowns(const std::vector<LaunchPair>& pairs, double margin);

// The test that launches of these numbers allow at a level, chosen without looking at their times.
Basis basis_for(size_t num_old, size_t num_new, double level);

// What such launches show: by simulation of normal launches, seeded, that are decided upon as
// compare_launches does.
class Power {
 public:
  Power(size_t num_old, size_t num_new, double level);
  // The relative slow-down that is called SLOWER with 80 % power; spread: standard deviation of a launch's
  // logarithm. NaN where none is.
  double slowdown(double spread, double margin) const;

 private:
  struct Trial {  // in standard deviations of a launch
    double shift, deviation;
    double ranks;  // the shift from which on the rank test sees the difference
    double high;   // of the interval by ranks
  };

  Basis basis_;
  double t_test_ = 0, t_interval_ = 0;  // a deviation of 1 times these is half an interval's width
  bool ranks_have_interval_ = false;
  std::vector<Trial> trials_;
};

}  // namespace shardmark

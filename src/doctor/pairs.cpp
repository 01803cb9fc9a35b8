// Verdicts use medians, which a few disturbed pairs do not move.
#include "doctor/pairs.h"

#include <algorithm>

#include "base/stats.h"

namespace shardmark::doctor {
namespace {

// With more members, the pairs of one do not move the median of all.
constexpr int kFew = 64;

std::vector<double> measured_without(const PairSpeeds& speeds, int member) {
  std::vector<double> values;
  for (int a = 0; a < speeds.size(); ++a)
    for (int b = a + 1; b < speeds.size(); ++b)
      if (a != member && b != member && !std::isnan(speeds.at(a, b))) values.push_back(speeds.at(a, b));
  return values;
}

// The usual speed of the pairs without a member, and how much these vary.
struct Background {
  explicit Background(std::vector<double> speeds) {
    if (speeds.empty()) return;
    usual = median(speeds);
    for (double& speed : speeds) speed = std::abs(speed - usual);
    deviation = 1.4826 * median(speeds) / usual;  // robust estimate of the standard deviation
  }
  double usual = NAN, deviation = 0;
};

// A member's speed relative to the others, and the limit below which it is named.
struct Standing {
  double share = 1, limit = 0;
};

Standing standing(const std::vector<double>& own, const Background& others, int size, double tolerance) {
  const double standard_error = 1.2533 * others.deviation / std::sqrt(static_cast<double>(own.size()));
  const Standing found{median(own) / others.usual, 1 - std::max(tolerance + 0.4 / size, 5 * standard_error)};
  const double slow_below = (1 + found.limit) / 2 * others.usual;
  const auto slow = std::count_if(own.begin(), own.end(), [&](double speed) { return speed < slow_below; });
  return 4 * slow >= 3 * static_cast<int64_t>(own.size()) ? found : Standing{};
}

}  // namespace

std::vector<double> PairSpeeds::measured() const { return measured_without(*this, -1); }

std::vector<double> PairSpeeds::measured_of(int member) const {
  std::vector<double> values;
  for (int other = 0; other < size_; ++other)
    if (other != member && !std::isnan(at(member, other))) values.push_back(at(member, other));
  return values;
}

std::vector<SlowMember> slow_members(const PairSpeeds& speeds, double tolerance) {
  std::vector<SlowMember> slow;
  const Background all(speeds.measured());
  for (int member = 0; member < speeds.size(); ++member) {
    const auto own = speeds.measured_of(member);
    const auto others = speeds.size() <= kFew ? Background(measured_without(speeds, member)) : all;
    if (own.empty() || std::isnan(others.usual)) continue;
    const Standing found = standing(own, others, speeds.size(), tolerance);
    if (found.share < found.limit) slow.push_back({member, found.share});
  }
  std::sort(slow.begin(), slow.end(),
            [](const SlowMember& a, const SlowMember& b) { return a.share < b.share; });
  return slow;
}

std::vector<SlowPair> slow_pairs(const PairSpeeds& speeds, const std::vector<SlowMember>& named,
                                 size_t most) {
  const auto all = speeds.measured();
  if (all.size() < 3) return {};
  const double usual = median(all);
  const auto is_named = [&](int member) {
    return std::any_of(named.begin(), named.end(),
                       [&](const SlowMember& one) { return one.member == member; });
  };
  std::vector<SlowPair> slow;
  for (int a = 0; a < speeds.size(); ++a)
    for (int b = a + 1; b < speeds.size(); ++b)
      if (speeds.at(a, b) < 0.6 * usual && !is_named(a) && !is_named(b))
        slow.push_back({a, b, speeds.at(a, b) / usual});
  std::sort(slow.begin(), slow.end(), [](const SlowPair& a, const SlowPair& b) { return a.share < b.share; });
  if (slow.size() > most) slow.resize(most);
  return slow;
}

}  // namespace shardmark::doctor

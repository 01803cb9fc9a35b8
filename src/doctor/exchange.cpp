// Members, their ranks, and who sends to whom.
#include "doctor/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ranges.h"

namespace shardmark::doctor {

int64_t exchange_bytes(double speed) {
  constexpr double kMostS = 0.1;
  int64_t bytes = kExchangeBytes;
  while (bytes > 64 << 10 && static_cast<double>(bytes) > kMostS * speed) bytes /= 2;
  return bytes;
}

int num_rails(const Members& members) {
  const auto fewest = std::min_element(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return a.ranks.size() < b.ranks.size();
  });
  return static_cast<int>(fewest->ranks.size());
}

Receivers nobody(const Members& members) {
  size_t ranks = 0;
  for (const Member& member : members) ranks += member.ranks.size();
  return Receivers(ranks, kRests);
}

void add_sending(Receivers& to, const Members& members, int from, int other) {
  const auto& senders = members[static_cast<size_t>(from)].ranks;
  const auto& receivers = members[static_cast<size_t>(other)].ranks;
  const auto rails = static_cast<size_t>(num_rails(members));
  for (size_t rail = 0; rail < rails; ++rail) to[static_cast<size_t>(senders[rail])] = receivers[rail];
}

std::vector<double> slowest(const Times& times, const Members& members, const Group& group) {
  const auto rails = static_cast<size_t>(num_rails(members));
  std::vector<double> most;
  for (int member : group)
    for (size_t rail = 0; rail < rails; ++rail) {
      const auto& own = times[static_cast<size_t>(members[static_cast<size_t>(member)].ranks[rail])];
      most.resize(own.size(), 0);
      for (size_t i = 0; i < own.size(); ++i) most[i] = std::max(most[i], own[i]);
    }
  return most;
}

std::string group_text(const Members& members, const Group& group) {
  std::vector<std::string> names;
  for (int member : group) names.push_back(members[static_cast<size_t>(member)].name);
  const bool is_range = group.back() - group.front() + 1 == static_cast<int>(group.size());
  if (group.size() < 3 || !is_range) return names_text(names);
  return fmt::format("{} .. {}", names.front(), names.back());
}

}  // namespace shardmark::doctor

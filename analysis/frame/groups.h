// Which things belong together: those that share a key. What compares points with each other groups them
// here.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <type_traits>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

using PointList = std::vector<const MergedPoint*>;

// The training points for which `holds` is true.
inline PointList training_points(
    const std::vector<MergedPoint>& points,
    bool (*holds)(const MergedPoint&) = [](const MergedPoint&) { return true; }) {
  PointList training;
  for (const MergedPoint& merged : points)
    if (is_training(merged) && holds(merged)) training.push_back(&merged);
  return training;
}

template <class Holds>
PointList those(const PointList& points, Holds holds) {
  PointList kept;
  for (const MergedPoint* merged : points)
    if (holds(*merged)) kept.push_back(merged);
  return kept;
}

// Groups of things with equal keys, in the order of their first ones. things: values that outlive the groups,
// or pointers to them; key_of: a function of a thing, or a member of it.
template <class Things, class KeyOf>
auto groups_of(const Things& things, KeyOf key_of) {
  const auto get = [](const auto& at) -> const auto& {
    if constexpr (std::is_pointer_v<typename Things::value_type>)
      return *at;
    else
      return at;
  };
  using Thing = std::remove_cvref_t<decltype(get(*things.begin()))>;
  std::map<std::remove_cvref_t<std::invoke_result_t<KeyOf, const Thing&>>, size_t> known;
  std::vector<std::vector<const Thing*>> groups;
  for (const auto& at : things) {
    const Thing& thing = get(at);
    const auto [found, is_new] = known.try_emplace(std::invoke(key_of, thing), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&thing);
  }
  return groups;
}

// The same with the least by `order_of` first in each group: that of the shortest step, or of the fewest
// ranks, is what the others are held against.
template <class Things, class KeyOf, class OrderOf>
auto groups_of(const Things& things, KeyOf key_of, OrderOf order_of) {
  auto groups = groups_of(things, key_of);
  for (auto& group : groups)
    std::stable_sort(group.begin(), group.end(), [&](const auto* a, const auto* b) {
      return std::invoke(order_of, *a) < std::invoke(order_of, *b);
    });
  return groups;
}

}  // namespace shardmark

// A random sample from a stream of unknown length, in which each item has the same chance to be kept. Source:
// Vitter, Random sampling with a reservoir, ACM TOMS 11(1), 1985, algorithm R.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace shardmark {

template <class Item>
class Reservoir {
 public:
  // Two reservoirs of equal size and seed keep the same positions of the stream, so ranks choose the same
  // items without communication.
  Reservoir(size_t most, uint64_t seed) : most_(most), random_(seed) {}

  void add(Item item) {
    const uint64_t place = seen_++;
    if (kept_.size() < most_) {
      kept_.emplace_back(place, std::move(item));
    } else if (const uint64_t chosen = random_() % seen_; chosen < most_) {
      kept_[chosen] = {place, std::move(item)};
    }
  }

  // Returns the kept items in the order of the stream: all of them, or `most` of them at even distances.
  std::vector<Item> take(size_t most) const {
    auto all = kept_;
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const size_t count = std::min(most, all.size());
    std::vector<Item> items;
    items.reserve(count);
    for (size_t i = 0; i < count; ++i) items.push_back(all[(2 * i + 1) * all.size() / (2 * count)].second);
    return items;
  }
  std::vector<Item> take() const { return take(kept_.size()); }

 private:
  size_t most_;
  std::mt19937_64 random_;
  uint64_t seen_ = 0;
  std::vector<std::pair<uint64_t, Item>> kept_;  // (position in the stream, item)
};

}  // namespace shardmark

// Axes of plain values, for the readers of blocks.
#pragma once

#include <string>
#include <vector>

#include "plan/yaml_node.h"

namespace shardmark {

inline constexpr int64_t kMostRanks = 1 << 20;
inline constexpr int64_t kMostBatch = 1
                                      << 24;  // these three bound the global batch, so that it is no overflow
inline constexpr int64_t kMostAccumulation = 1 << 16;

// What read makes of each item.
template <class Read>
auto read_axis(const YamlNode& node, Read read) {
  std::vector<std::decay_t<decltype(read(node))>> values;
  for (const auto& item : node.items()) values.push_back(read(item));
  return values;
}

inline std::vector<int64_t> read_counts(const YamlNode& node, int64_t maximum) {
  return read_axis(node, [&](const YamlNode& item) { return item.integer(1, maximum); });
}

inline std::vector<std::string> read_words(const YamlNode& node, const std::vector<std::string>& accepted) {
  return read_axis(node, [&](const YamlNode& item) { return item.word(accepted); });
}

int64_t read_size(const YamlNode& node);           // bytes: 8, 4KiB
double read_clip_norm(const YamlNode& node);       // none (0), or a norm
int64_t read_batch(const YamlNode& node);          // samples per rank, or largest (kLargest)
int64_t read_checkpointing(const YamlNode& node);  // none (0), full (1), or n: every n-th block

// The names of a table's rows.
template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace shardmark

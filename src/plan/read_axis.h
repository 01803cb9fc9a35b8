// Axes of plain values, for the readers of blocks.
#pragma once

#include <string>
#include <vector>

#include "plan/yaml_node.h"

namespace shardmark {

// What read makes of each item.
template <class Read>
auto read_axis(const YamlNode& node, Read read) {
  std::vector<std::decay_t<decltype(read(node))>> values;
  for (const auto& item : node.items()) values.push_back(read(item));
  return values;
}

// Items that are all of one kind.
template <class Kind>
auto read_values(const YamlNode& node, const Kind& kind) {
  return read_axis(node, [&](const YamlNode& item) { return item.value(kind); });
}

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

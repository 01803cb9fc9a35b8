// Which groups a block uses: its own (at most one), and when the root groups begin and end.
#pragma once

#include <vector>

#include "strategies/program.h"

namespace shardmark::strategies {

struct Schedule {
  std::vector<int64_t> units;          // groups of one block, in forward order
  std::vector<int64_t> unit_of_block;  // [block]: index into units, or -1
  std::vector<size_t> roots;           // root groups
  std::vector<std::vector<size_t>>
      complete_at;  // [block]: groups whose gradients are complete after its backward
};

inline Schedule make_schedule(const ModelTable& table) {
  Schedule schedule;
  std::vector<int64_t> own_group(table.blocks.size(), -1);  // [block]
  schedule.unit_of_block.assign(table.blocks.size(), -1);
  schedule.complete_at.resize(table.blocks.size());
  for (size_t group : specs::backward_order(table)) {
    const auto first = static_cast<size_t>(table.groups[group].first_block);
    schedule.complete_at[first].push_back(group);
    if (specs::is_root(table.groups[group]))
      schedule.roots.push_back(group);
    else
      own_group[first] = static_cast<int64_t>(group);
  }
  for (size_t block = 0; block < table.blocks.size(); ++block) {
    if (own_group[block] < 0) continue;
    schedule.unit_of_block[block] = static_cast<int64_t>(schedule.units.size());
    schedule.units.push_back(own_group[block]);
  }
  return schedule;
}

}  // namespace shardmark::strategies

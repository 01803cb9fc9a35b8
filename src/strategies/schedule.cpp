// Orders of computing, and what is to be known of each place in one.
#include "strategies/schedule.h"

#include <set>

#include "specs/layout.h"

namespace shardmark::strategies {
namespace {

template <class KeepsActivations>
void add_forward(Schedule& schedule, int64_t num_blocks, int64_t micro_batch, KeepsActivations&& keeps) {
  schedule.push_back({Compute::load, 0, micro_batch});
  for (int64_t block = 0; block < num_blocks; ++block)
    schedule.push_back({Compute::forward, block, micro_batch, keeps(block)});
}

}  // namespace

Schedule accumulate(int64_t num_blocks, int64_t micro_batches, int64_t recompute) {
  const auto keeps = [&](int64_t block) {
    return recompute == 0 || (block + 1) % recompute != 0 || block + 1 == num_blocks;
  };
  Schedule schedule;
  for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    add_forward(schedule, num_blocks, micro_batch, keeps);
    for (int64_t block = num_blocks - 1; block >= 0; --block) {
      if (!keeps(block)) schedule.push_back({Compute::recompute, block, micro_batch, true});
      schedule.push_back({Compute::backward, block, micro_batch});
    }
  }
  return schedule;
}

Schedule forward_only(int64_t num_blocks) {
  Schedule schedule;
  add_forward(schedule, num_blocks, 0, [](int64_t) { return false; });
  return schedule;
}

std::vector<Position> positions(const Schedule& schedule, const specs::ModelTable& model) {
  const std::vector<size_t> order = specs::backward_order(model);
  std::set<size_t> used;
  std::vector<int64_t> backwards(model.blocks.size());  // [block]: still to come
  for (const Action& action : schedule)
    if (action.what == Compute::backward) ++backwards[static_cast<size_t>(action.block)];
  const std::vector<int64_t> all = backwards;
  std::vector<Position> result;
  for (const Action& action : schedule) {
    Position& at = result.emplace_back(Position{action, {}, {}, {}, {}});
    if (action.what == Compute::load) continue;
    const auto block = static_cast<size_t>(action.block);
    for (const size_t group : order) {
      const specs::GroupSpec& spec = model.groups[group];
      if (spec.first_block == action.block && !specs::is_root(spec)) at.unit = group;
      if (action.what == Compute::backward && spec.last_block == action.block) at.begin.push_back(group);
      if (action.what == Compute::backward && spec.first_block == action.block) at.complete.push_back(group);
    }
    for (size_t group = 0; group < model.groups.size(); ++group)
      if (model.groups[group].first_block <= action.block && action.block <= model.groups[group].last_block &&
          used.insert(group).second)
        at.first_used.push_back(group);
    if (action.what != Compute::backward) continue;
    at.is_first = backwards[block] == all[block];
    at.is_last = --backwards[block] == 0;
  }
  return result;
}

}  // namespace shardmark::strategies

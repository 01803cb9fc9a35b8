// Expands pipeline schedules into schedules of blocks, and finds what strategies need to know of each
// position.
#include "strategies/schedule.h"

#include <functional>
#include <set>

#include "specs/layout.h"

namespace shardmark::strategies {
namespace {

void add_forward(Schedule& schedule, const specs::Chunk& chunk, int64_t micro_batch,
                 const std::function<bool(int64_t)>& keeps) {
  for (int64_t block = chunk.begin; block < chunk.end; ++block)
    schedule.push_back({Compute::forward, block, micro_batch, keeps(block)});
}

}  // namespace

Schedule by_blocks(const PipelineOrder& order, const std::vector<specs::Chunk>& chunks, int64_t recompute) {
  Schedule schedule;
  std::set<std::pair<int64_t, int64_t>> computed_again;  // (block, micro-batch)
  std::set<int64_t> loaded;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto [pass, number, micro_batch] = order[i];
    const specs::Chunk& chunk = chunks[static_cast<size_t>(number)];
    if (loaded.insert(micro_batch).second) schedule.push_back({Compute::load, 0, micro_batch});
    if (pass == Pass::forward) {
      // Whether the chunk's backward on this micro-batch is the next action.
      const bool returns = i + 1 < order.size() && order[i + 1].pass != Pass::backward_weight &&
                           order[i + 1].pass != Pass::forward && order[i + 1].chunk == number &&
                           order[i + 1].micro_batch == micro_batch;
      add_forward(schedule, chunk, micro_batch, [&](int64_t block) {
        const int64_t in_model = chunk.first_block + block - chunk.begin;
        if (recompute == 0 || (in_model + 1) % recompute != 0 || (returns && block + 1 == chunk.end))
          return true;
        computed_again.emplace(block, micro_batch);
        return false;
      });
      continue;
    }
    const Compute what = pass == Pass::backward         ? Compute::backward
                         : pass == Pass::backward_input ? Compute::backward_input
                                                        : Compute::backward_weight;
    for (int64_t block = chunk.end - 1; block >= chunk.begin; --block) {
      if (what != Compute::backward_weight && computed_again.contains({block, micro_batch}))
        schedule.push_back({Compute::recompute, block, micro_batch, true});
      schedule.push_back({what, block, micro_batch});
    }
  }
  return schedule;
}

Schedule forward_only(const std::vector<specs::Chunk>& chunks) {
  Schedule schedule = {{Compute::load, 0, 0}};
  for (const specs::Chunk& chunk : chunks) add_forward(schedule, chunk, 0, [](int64_t) { return false; });
  return schedule;
}

namespace {

// For each block its groups. Each list is in the order in which the gradients of groups become complete.
struct GroupsOfBlocks {
  std::vector<std::vector<size_t>> first, last;  // the groups that begin or end with this block
  std::vector<std::vector<size_t>> units;        // the groups that only this block uses
  std::vector<std::vector<size_t>> used;         // all groups that the block uses, in the order of the table

  explicit GroupsOfBlocks(const specs::ModelTable& model)
      : first(model.blocks.size()),
        last(model.blocks.size()),
        units(model.blocks.size()),
        used(model.blocks.size()) {
    for (const size_t group : specs::backward_order(model)) {
      const specs::GroupSpec& spec = model.groups[group];
      const auto begin = static_cast<size_t>(spec.first_block), end = static_cast<size_t>(spec.last_block);
      first[begin].push_back(group);
      last[end].push_back(group);
      if (!specs::is_root(spec)) units[begin].push_back(group);
    }
    for (size_t group = 0; group < model.groups.size(); ++group)
      for (int64_t block = model.groups[group].first_block; block <= model.groups[group].last_block; ++block)
        used[static_cast<size_t>(block)].push_back(group);
  }
};

}  // namespace

std::vector<Position> positions(const Schedule& schedule, const specs::ModelTable& model) {
  const GroupsOfBlocks groups(model);
  std::vector<bool> used(model.groups.size());
  std::vector<int64_t> backwards(model.blocks.size());  // [block]: backwards that are still to come
  for (const Action& action : schedule)
    if (action.what == Compute::backward || action.what == Compute::backward_weight)
      ++backwards[static_cast<size_t>(action.block)];
  const std::vector<int64_t> all = backwards;
  std::vector<Position> result;
  result.reserve(schedule.size());
  for (const Action& action : schedule) {
    Position& at = result.emplace_back(Position{action, {}, {}, {}, {}});
    if (action.what == Compute::load) continue;
    const auto block = static_cast<size_t>(action.block);
    at.units = groups.units[block];
    // Backward runs from the last block to the first. The gradient of a group therefore begins at the last
    // block that reads the group, and is complete after the first one.
    if (at.adds_gradients()) at.begin = groups.last[block], at.complete = groups.first[block];
    for (const size_t group : groups.used[block]) {
      if (used[group]) continue;
      used[group] = true;
      at.first_used.push_back(group);
    }
    if (!at.adds_gradients()) continue;
    at.is_first = backwards[block] == all[block];
    at.is_last = --backwards[block] == 0;
  }
  return result;
}

}  // namespace shardmark::strategies

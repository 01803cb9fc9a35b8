// Computes offsets, owners and buckets. There are no tensors here.
#include "specs/layout.h"

#include <algorithm>
#include <numeric>

namespace shardmark::specs {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct TensorPlace {
  size_t group;
  size_t parameter;
  int64_t numel;
  bool is_tied;  // tied tensors are dealt first, so that both stages that have them deal them alike
};

// How much each of the ranks has that shard a copy of the model. There is a sum for each of these ranks.
// Tensors of experts that ranks share are owned within a smaller process group: an index in it stands for
// several ranks, one for each part of the experts, and each of these gets the tensor's size.
class Loads {
 public:
  explicit Loads(const ShardingRanks& ranks)
      : stride_(std::min(ranks.all.stride, ranks.of_experts.stride)),
        of_(static_cast<size_t>(std::max(span(ranks.all), span(ranks.of_experts)) / stride_)) {}

  // Gives to the owner in the process group that has the least so far, and returns it.
  size_t give_to_least(const ProcessGroup& process_group, int64_t amount) {
    const auto index_of_least = [](const std::vector<int64_t>& loads) {
      return static_cast<size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    };
    size_t least = 0;
    if (is_of_all(process_group)) {
      least = index_of_least(of_);
    } else {
      // The owner's load is that of the fullest rank it stands for.
      std::vector<int64_t> of_owners(static_cast<size_t>(process_group.ranks));
      for (size_t rank = 0; rank < of_.size(); ++rank) {
        int64_t& most = of_owners[owner(process_group, rank)];
        most = std::max(most, of_[rank]);
      }
      least = index_of_least(of_owners);
    }
    give(process_group, least, amount);
    return least;
  }
  void give(const ProcessGroup& process_group, size_t to, int64_t amount) {
    if (is_of_all(process_group)) {
      of_[to] += amount;
      return;
    }
    for (size_t rank = 0; rank < of_.size(); ++rank)
      if (owner(process_group, rank) == to) of_[rank] += amount;
  }
  int64_t most() const { return *std::max_element(of_.begin(), of_.end()); }

 private:
  static int64_t span(const ProcessGroup& ranks) { return ranks.ranks * ranks.stride; }
  bool is_of_all(const ProcessGroup& process_group) const {
    return static_cast<size_t>(process_group.ranks) == of_.size();
  }
  size_t owner(const ProcessGroup& process_group, size_t rank) const {
    return static_cast<size_t>(process_group.index_of(static_cast<int64_t>(rank) * stride_));
  }

  int64_t stride_;
  std::vector<int64_t> of_;
};

// Deals tensors in order of decreasing size, each to the rank that has the least so far. Returns
// owners[group][parameter].
std::vector<std::vector<size_t>> deal_tensors(const ModelTable& table, const ShardingRanks& ranks,
                                              Evenness evenness) {
  std::vector<TensorPlace> tensors;
  std::vector<std::vector<size_t>> owners;
  for (size_t g = 0; g < table.groups.size(); ++g) {
    const auto& parameters = table.groups[g].parameters;
    owners.emplace_back(parameters.size());
    for (size_t p = 0; p < parameters.size(); ++p)
      tensors.push_back({g, p, round_up(parameters[p].numel(), kAlignment), table.groups[g].is_tied});
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.is_tied, a.numel) > std::pair(b.is_tied, b.numel);
  });
  Loads loads(ranks);
  for (const auto& tensor : tensors)
    owners[tensor.group][tensor.parameter] = loads.give_to_least(
        ranks.of(table.groups[tensor.group]), evenness == Evenness::bytes ? tensor.numel : 1);
  return owners;
}

}  // namespace

Range GroupLayout::owned(size_t segment, int64_t rank) const {
  const auto& [range, owner] = segments[segment];
  const int64_t index = process_group.index_of(rank), part = range.numel / process_group.ranks;
  if (!owner) return {range.begin + index * part, part};
  return {range.begin, owner == index ? range.numel : 0};
}

std::vector<GroupLayout> even_layout(const ModelTable& table, const ShardingRanks& ranks) {
  std::vector<GroupLayout> layout;
  for (const auto& group : table.groups) {
    GroupLayout place;
    for (const auto& parameter : group.parameters) {
      place.offsets.push_back(place.numel);
      place.numel += round_up(parameter.numel(), kAlignment);
    }
    place.process_group = ranks.of(group);
    place.numel = round_up(place.numel, place.process_group.ranks * kAlignment);
    place.segments = {{{0, place.numel}}};
    layout.push_back(std::move(place));
  }
  return layout;
}

std::vector<GroupLayout> dim0_layout(const ModelTable& table, const ShardingRanks& ranks) {
  std::vector<GroupLayout> layout;
  for (const auto& group : table.groups) {
    GroupLayout place;
    place.process_group = ranks.of(group);
    for (const auto& parameter : group.parameters) {
      const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape.front();
      // Each rank gets the same number of rows, so that one all-gather or reduce-scatter moves the tensor
      // in place. The rows that do not exist are padding.
      const int64_t numel = round_up(rows, place.process_group.ranks) * (parameter.numel() / rows);
      place.offsets.push_back(place.numel);
      place.segments.push_back({{place.numel, numel}});
      place.numel += round_up(numel, kAlignment);
    }
    layout.push_back(std::move(place));
  }
  return layout;
}

std::vector<GroupLayout> whole_tensor_layout(const ModelTable& table, const ShardingRanks& ranks,
                                             Evenness evenness) {
  const auto owners = deal_tensors(table, ranks, evenness);
  std::vector<GroupLayout> layout;
  for (size_t g = 0; g < table.groups.size(); ++g) {
    const auto& parameters = table.groups[g].parameters;
    GroupLayout place;
    place.offsets.resize(parameters.size());
    place.process_group = ranks.of(table.groups[g]);
    for (size_t rank = 0; rank < static_cast<size_t>(place.process_group.ranks); ++rank) {
      // One rank's tensors lie next to each other, so that one broadcast or reduce moves all of them.
      const int64_t begin = place.numel;
      for (size_t p = 0; p < parameters.size(); ++p) {
        if (owners[g][p] != rank) continue;
        place.offsets[p] = place.numel;
        place.numel += round_up(parameters[p].numel(), kAlignment);
      }
      if (place.numel > begin)
        place.segments.push_back({{begin, place.numel - begin}, static_cast<int64_t>(rank)});
    }
    layout.push_back(std::move(place));
  }
  return layout;
}

ModelTable with_persistent(ModelTable table, int64_t threshold, const std::vector<Chunk>& chunks) {
  std::vector<GroupSpec> all;
  for (const Chunk& chunk : chunks) {
    GroupSpec persistent{chunks.size() == 1 ? "persistent" : "persistent." + std::to_string(all.size()),
                         {},
                         chunk.begin,
                         chunk.end - 1};
    // A chunk of one block has nothing to gain: a group of that block alone would be gathered like any
    // other.
    if (!is_root(persistent)) continue;
    for (auto& group : table.groups) {
      if (group.is_tied || group.has_own_experts() || group.first_block < chunk.begin ||
          group.last_block >= chunk.end)
        continue;
      const auto small = std::stable_partition(group.parameters.begin(), group.parameters.end(),
                                               [&](const auto& p) { return p.numel() >= threshold; });
      std::move(small, group.parameters.end(), std::back_inserter(persistent.parameters));
      group.parameters.erase(small, group.parameters.end());
    }
    if (!persistent.parameters.empty()) all.push_back(std::move(persistent));
  }
  std::erase_if(table.groups, [](const auto& group) { return group.parameters.empty(); });
  table.groups.insert(table.groups.begin(), all.begin(), all.end());
  return table;
}

std::vector<size_t> backward_order(const ModelTable& table) {
  std::vector<size_t> order(table.groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto& x = table.groups[a];
    const auto& y = table.groups[b];
    // A gradient is complete after the backward of the first block that reads the group, and backward runs
    // from the last block to the first. Among the groups of one first block, those that later blocks read
    // too come last.
    return std::pair(-x.first_block, x.last_block) < std::pair(-y.first_block, y.last_block);
  });
  return order;
}

std::vector<size_t> memory_order(const ModelTable& table) {
  std::vector<size_t> order = backward_order(table);
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t group) { return !table.groups[group].has_own_experts(); });
  return order;
}

std::vector<Bucket> buckets(const ModelTable& table, const std::vector<GroupLayout>& layout,
                            int64_t first_elements, int64_t elements) {
  std::vector<Bucket> result;
  int64_t wanted = 0;  // size of the bucket that is being filled
  for (size_t group : memory_order(table)) {
    const bool of_experts = table.groups[group].has_own_experts();
    const bool is_first = result.empty() || result.back().of_experts != of_experts;
    if (is_first || result.back().numel >= wanted) {
      wanted = is_first ? first_elements : elements;
      result.push_back({{}, 0, of_experts});
    }
    result.back().groups.push_back(group);
    result.back().numel += layout[group].numel;
  }
  return result;
}

int64_t total_numel(const std::vector<GroupLayout>& layout) {
  int64_t total = 0;
  for (const auto& place : layout) total += place.numel;
  return total;
}

int64_t largest_share(const std::vector<GroupLayout>& layout) {
  if (layout.empty()) return 0;
  int64_t everyone = 0;  // what every rank has of sharded segments
  // Only process groups are left in a layout. That of experts differs from the others by its stride.
  ShardingRanks ranks(layout.front().process_group);
  for (const auto& place : layout)
    if (place.process_group.stride != ranks.all.stride) ranks.of_experts = place.process_group;
  Loads whole(ranks);
  for (const auto& place : layout)
    for (const auto& [range, owner] : place.segments)
      if (owner)
        whole.give(place.process_group, static_cast<size_t>(*owner), range.numel);
      else
        everyone += range.numel / place.process_group.ranks;
  return everyone + whole.most();
}

}  // namespace shardmark::specs

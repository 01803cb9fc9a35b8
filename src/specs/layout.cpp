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

// Deals tensors in order of decreasing size, each to the rank that has the least so far. Returns
// owners[group][parameter].
std::vector<std::vector<size_t>> deal_tensors(const ModelTable& table, int64_t ranks, Evenness evenness) {
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
  std::vector<int64_t> load(static_cast<size_t>(ranks));
  for (const auto& tensor : tensors) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += evenness == Evenness::bytes ? tensor.numel : 1;
    owners[tensor.group][tensor.parameter] = static_cast<size_t>(least - load.begin());
  }
  return owners;
}

}  // namespace

Range GroupLayout::owned(size_t segment, int64_t rank) const {
  const auto& [range, owner] = segments[segment];
  const int64_t index = process_group.index_of(rank), part = range.numel / process_group.ranks;
  if (!owner) return {range.begin + index * part, part};
  return {range.begin, owner == index ? range.numel : 0};
}

std::vector<GroupLayout> even_layout(const ModelTable& table, ProcessGroup process_group) {
  std::vector<GroupLayout> layout;
  for (const auto& group : table.groups) {
    GroupLayout place;
    for (const auto& parameter : group.parameters) {
      place.offsets.push_back(place.numel);
      place.numel += round_up(parameter.numel(), kAlignment);
    }
    place.numel = round_up(place.numel, process_group.ranks * kAlignment);
    place.process_group = process_group;
    place.segments = {{{0, place.numel}}};
    layout.push_back(std::move(place));
  }
  return layout;
}

std::vector<GroupLayout> dim0_layout(const ModelTable& table, ProcessGroup process_group) {
  std::vector<GroupLayout> layout;
  for (const auto& group : table.groups) {
    GroupLayout place;
    place.process_group = process_group;
    for (const auto& parameter : group.parameters) {
      const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape.front();
      const int64_t numel = round_up(rows, process_group.ranks) * (parameter.numel() / rows);
      place.offsets.push_back(place.numel);
      place.segments.push_back({{place.numel, numel}});
      place.numel += round_up(numel, kAlignment);
    }
    layout.push_back(std::move(place));
  }
  return layout;
}

std::vector<GroupLayout> whole_tensor_layout(const ModelTable& table, ProcessGroup process_group,
                                             Evenness evenness) {
  const auto owners = deal_tensors(table, process_group.ranks, evenness);
  std::vector<GroupLayout> layout;
  for (size_t g = 0; g < table.groups.size(); ++g) {
    const auto& parameters = table.groups[g].parameters;
    GroupLayout place;
    place.offsets.resize(parameters.size());
    place.process_group = process_group;
    for (size_t rank = 0; rank < static_cast<size_t>(process_group.ranks); ++rank) {
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
    if (!is_root(persistent)) continue;
    for (auto& group : table.groups) {
      if (group.is_tied || group.first_block < chunk.begin || group.last_block >= chunk.end) continue;
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
  std::vector<int64_t> whole(static_cast<size_t>(layout.front().process_group.ranks));
  for (const auto& place : layout)
    for (const auto& [range, owner] : place.segments)
      (owner ? whole[static_cast<size_t>(*owner)] : everyone) +=
          owner ? range.numel : range.numel / place.process_group.ranks;
  return everyone + *std::max_element(whole.begin(), whole.end());
}

int64_t largest_group(const ModelTable& table, const std::vector<GroupLayout>& layout) {
  int64_t largest = 0;
  for (size_t g = 0; g < layout.size(); ++g)
    if (!is_root(table.groups[g])) largest = std::max(largest, layout[g].numel);
  return largest;
}

}  // namespace shardmark::specs

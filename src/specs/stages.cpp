// Divides a model into pipeline stages: a binary search finds the smallest possible largest part, and then
// the division with parts as equal as possible. Groups follow the blocks that read them.
#include "specs/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace shardmark::specs {
namespace {

constexpr int kHalvings = 60;  // halvings of the total weight: more precise than sums of doubles

double block_weight(const BlockSpec& block, bool by_flops) { return by_flops ? block.forward_flops : 1; }

// The most that a part may hold.
struct Cap {
  double weight = 0;
  int64_t blocks = 0;
  bool holds(double sum, int64_t count) const { return sum <= weight * (1 + 1e-12) && count <= blocks; }
};

// Divides the blocks into the fewest parts that respect the cap, and fills the last part first. Returns where
// each part begins, and the number of blocks. A part ends where one more block would exceed the cap, or where
// only as many blocks are left as there are parts to come.
std::vector<int64_t> fill_from_back(const std::vector<double>& weights, int64_t parts, const Cap& cap) {
  std::vector<int64_t> bounds = {std::ssize(weights)};  // from the last to the first
  double sum = 0;
  for (int64_t block = std::ssize(weights) - 1; block >= 0; --block) {
    const double weight = weights[static_cast<size_t>(block)];
    const bool is_needed = block + 1 == parts - std::ssize(bounds);  // one block for each part to come
    const int64_t held = bounds.back() - block - 1;
    if (held > 0 && (!cap.holds(sum + weight, held + 1) || is_needed)) {
      bounds.push_back(block + 1);
      sum = 0;
    }
    sum += weight;
  }
  bounds.push_back(0);
  std::reverse(bounds.begin(), bounds.end());
  return bounds;
}

// Divides the blocks within the cap into parts with as equal numbers of blocks as possible. If they cannot be
// equal, earlier parts have fewer, because under 1f1b the first stage keeps the activations of the most
// micro-batches.
std::vector<int64_t> cut_evenly(const std::vector<double>& weights, int64_t parts, const Cap& cap) {
  const auto count = std::ssize(weights);
  const std::vector<int64_t> earliest = fill_from_back(weights, parts, cap);
  std::vector<int64_t> bounds = {0};
  for (int64_t part = 1; part < parts; ++part) {
    // A part takes its equal share of the blocks that are left, as far as the cap allows. It must not end
    // before `earliest`: the parts behind it could not hold the rest otherwise.
    const int64_t begin = bounds.back(), even = (count - begin) / (parts - part + 1);
    int64_t end = begin + 1;
    double sum = weights[static_cast<size_t>(begin)];
    for (; end - begin < even; ++end) {
      sum += weights[static_cast<size_t>(end)];
      if (!cap.holds(sum, end - begin + 1)) break;
    }
    bounds.push_back(std::max(end, earliest[static_cast<size_t>(part)]));
  }
  bounds.push_back(count);
  return bounds;
}

std::vector<double> weights_of(const ModelTable& model, bool by_flops) {
  std::vector<double> weights;
  for (const BlockSpec& block : model.blocks) weights.push_back(block_weight(block, by_flops));
  return weights;
}

}  // namespace

std::vector<int64_t> part_bounds(const ModelTable& model, int64_t parts, bool by_flops) {
  const auto count = std::ssize(model.blocks);
  if (parts > count)
    throw UsageError(fmt::format("a model of {} blocks cannot be cut into {} stages; at most {} work", count,
                                 parts, count));
  const std::vector<double> weights = weights_of(model, by_flops);
  const auto fits = [&](const Cap& cap) {
    return std::ssize(fill_from_back(weights, parts, cap)) <= parts + 1;
  };
  double too_small = 0;
  Cap cap{std::accumulate(weights.begin(), weights.end(), 0.0), count};
  ENSURE(fits(cap), "a model that cannot be cut");
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (too_small + cap.weight) / 2;
    (fits({middle, count}) ? cap.weight : too_small) = middle;
  }
  // A heavier single block is a part by itself. The other parts may then weigh as much as it does.
  cap.weight = std::max(cap.weight, *std::max_element(weights.begin(), weights.end()));
  for (int64_t too_few = 0; cap.blocks - too_few > 1;) {
    const int64_t middle = too_few + (cap.blocks - too_few) / 2;
    (fits({cap.weight, middle}) ? cap.blocks : too_few) = middle;
  }
  return cut_evenly(weights, parts, cap);
}

StageTable stage_table(const ModelTable& whole, const Split& split, const std::vector<int64_t>& bounds,
                       const std::vector<int64_t>& parts) {
  ModelTable table{{}, {}, {}, whole.sample, whole.split, whole.flops_formula, whole.has_local_norms};
  std::vector<Chunk> chunks;
  const auto is_elsewhere = [&](int64_t part) {
    return part >= 0 && part + 1 < std::ssize(bounds) &&
           std::find(parts.begin(), parts.end(), part) == parts.end();
  };
  std::vector<int64_t> place(whole.blocks.size(), -1);  // [block of the model]: its index here
  for (const int64_t part : parts) {
    const int64_t first = bounds[static_cast<size_t>(part)], end = bounds[static_cast<size_t>(part) + 1];
    const auto begin = std::ssize(table.blocks);
    for (int64_t block = first; block < end; ++block) {
      place[static_cast<size_t>(block)] = std::ssize(table.blocks);
      table.blocks.push_back(whole.blocks[static_cast<size_t>(block)]);
    }
    chunks.push_back(
        {begin, std::ssize(table.blocks), first, is_elsewhere(part - 1), is_elsewhere(part + 1)});
  }
  for (const GroupSpec& of_model : whole.groups) {
    const int64_t first = place[static_cast<size_t>(of_model.first_block)],
                  last = place[static_cast<size_t>(of_model.last_block)];
    if (first < 0 && last < 0) continue;
    GroupSpec& group = table.groups.emplace_back(of_model);
    // A group that another stage reads as well is tied. Here it spans only the blocks that this stage has.
    group.is_tied = first < 0 || last < 0;
    group.first_block = first < 0 ? last : first;
    group.last_block = last < 0 ? first : last;
  }
  for (const BufferSpec& buffer : whole.buffers)
    if (place[static_cast<size_t>(buffer.block)] >= 0) {
      table.buffers.push_back(buffer);
      table.buffers.back().block = place[static_cast<size_t>(buffer.block)];
    }
  table = split_table(std::move(table), split);
  // The input of a block is the output of the block before it in the model, which another stage may have.
  for (size_t block = 1; block < place.size(); ++block)
    if (place[block] >= 0)
      table.blocks[static_cast<size_t>(place[block])].input_shape =
          split_output_shape(whole.blocks[block - 1], split);
  return {std::make_shared<ModelTable>(std::move(table)), std::move(chunks)};
}

StageTable whole_table(SharedTable model) {
  const auto blocks = std::ssize(model->blocks);
  return {std::move(model), {{0, blocks}}};
}

}  // namespace shardmark::specs

// Bounds by a search for the least largest part; groups follow the blocks that read them.
#include "specs/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace shardmark::specs {
namespace {

constexpr int kHalvings = 60;  // of all weights: closer than doubles add up

double block_weight(const BlockSpec& block, bool by_flops) { return by_flops ? block.forward_flops : 1; }

// The fewest parts whose weights are at most `most`; a part ends where the next block would exceed it, or
// where only as many blocks are left as parts are needed.
std::vector<int64_t> cut_greedily(const std::vector<double>& weights, int64_t parts, double most) {
  std::vector<int64_t> bounds = {0};
  double sum = 0;
  const auto count = std::ssize(weights);
  for (int64_t block = 0; block < count; ++block) {
    const double weight = weights[static_cast<size_t>(block)];
    const bool is_needed = count - block == parts - std::ssize(bounds);  // one block for each part to come
    if (block > bounds.back() && (sum + weight > most * (1 + 1e-12) || is_needed)) {
      bounds.push_back(block);
      sum = 0;
    }
    sum += weight;
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
  const auto fits = [&](double most) { return std::ssize(cut_greedily(weights, parts, most)) <= parts + 1; };
  double too_small = 0, enough = std::accumulate(weights.begin(), weights.end(), 0.0);
  ENSURE(fits(enough), "a model that cannot be cut");
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (too_small + enough) / 2;
    (fits(middle) ? enough : too_small) = middle;
  }
  return cut_greedily(weights, parts, enough);
}

StageTable stage_table(const ModelTable& whole, const Split& split, const std::vector<int64_t>& bounds,
                       int64_t stage, int64_t stages) {
  ModelTable table{{}, {}, {}, whole.sample, whole.split, whole.flops_formula};
  std::vector<Chunk> chunks;
  const auto parts = std::ssize(bounds) - 1;
  std::vector<int64_t> place(whole.blocks.size(), -1);  // [block of the model]: here
  for (int64_t part = stage; part < parts; part += stages) {
    const int64_t first = bounds[static_cast<size_t>(part)], end = bounds[static_cast<size_t>(part) + 1];
    const auto begin = std::ssize(table.blocks);
    for (int64_t block = first; block < end; ++block) {
      place[static_cast<size_t>(block)] = std::ssize(table.blocks);
      table.blocks.push_back(whole.blocks[static_cast<size_t>(block)]);
    }
    chunks.push_back(
        {begin, std::ssize(table.blocks), first, stages > 1 && part > 0, stages > 1 && part + 1 < parts});
  }
  for (const GroupSpec& of_model : whole.groups) {
    const int64_t first = place[static_cast<size_t>(of_model.first_block)],
                  last = place[static_cast<size_t>(of_model.last_block)];
    if (first < 0 && last < 0) continue;
    GroupSpec& group = table.groups.emplace_back(of_model);
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

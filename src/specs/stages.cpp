// Bounds by a search for the least largest part; groups follow the blocks that read them.
#include "specs/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace shardmark::specs {
namespace {

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
  std::vector<double> sums;  // of every run of blocks: one of them is the largest part
  for (size_t first = 0; first < weights.size(); ++first) {
    double sum = 0;
    for (size_t last = first; last < weights.size(); ++last) sums.push_back(sum += weights[last]);
  }
  std::sort(sums.begin(), sums.end());
  const auto fits = [&](double most) { return std::ssize(cut_greedily(weights, parts, most)) <= parts + 1; };
  const auto least = std::partition_point(sums.begin(), sums.end(), [&](double most) { return !fits(most); });
  ENSURE(least != sums.end(), "a model that cannot be cut");
  return cut_greedily(weights, parts, *least);
}

StageTable stage_table(ModelTable model, const std::vector<int64_t>& bounds, int64_t stage, int64_t stages) {
  std::vector<BlockSpec> blocks = std::move(model.blocks);
  std::vector<GroupSpec> groups = std::move(model.groups);
  const std::vector<BufferSpec> buffers = std::move(model.buffers);
  const auto made = std::make_shared<ModelTable>(std::move(model));
  StageTable result{made, {}};
  ModelTable& table = *made;
  table.blocks.clear();
  table.groups.clear();
  table.buffers.clear();
  const auto parts = std::ssize(bounds) - 1;
  std::vector<int64_t> place(blocks.size(), -1);  // [block of the model]: here
  for (int64_t part = stage; part < parts; part += stages) {
    const int64_t first = bounds[static_cast<size_t>(part)], end = bounds[static_cast<size_t>(part) + 1];
    const auto begin = std::ssize(table.blocks);
    for (int64_t block = first; block < end; ++block) {
      const auto at = static_cast<size_t>(block);
      if (block > 0) {
        const int64_t before = place[at - 1];
        blocks[at].input_shape =
            (before < 0 ? blocks[at - 1] : table.blocks[static_cast<size_t>(before)]).output_shape;
      }
      place[at] = std::ssize(table.blocks);
      table.blocks.push_back(std::move(blocks[at]));
    }
    result.chunks.push_back(
        {begin, std::ssize(table.blocks), first, stages > 1 && part > 0, stages > 1 && part + 1 < parts});
  }
  for (GroupSpec& group : groups) {
    const int64_t first = place[static_cast<size_t>(group.first_block)],
                  last = place[static_cast<size_t>(group.last_block)];
    if (first < 0 && last < 0) continue;
    group.is_tied = first < 0 || last < 0;
    group.first_block = first < 0 ? last : first;
    group.last_block = last < 0 ? first : last;
    table.groups.push_back(std::move(group));
  }
  for (const BufferSpec& buffer : buffers)
    if (place[static_cast<size_t>(buffer.block)] >= 0) {
      table.buffers.push_back(buffer);
      table.buffers.back().block = place[static_cast<size_t>(buffer.block)];
    }
  return result;
}

StageTable whole_table(SharedTable model) {
  const auto blocks = std::ssize(model->blocks);
  return {std::move(model), {{0, blocks}}};
}

}  // namespace shardmark::specs

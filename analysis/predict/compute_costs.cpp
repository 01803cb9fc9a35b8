// Medians over what is alike, and lines between batches.
#include "analysis/predict/compute_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "analysis/frame/known.h"
#include "base/stats.h"
#include "specs/specs.h"
#include "strategies/strategy.h"
#include "strategies/traits.h"

namespace shardmark {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double micro_batch_s(const ComputeTimes& times) {
  return times.data_s + sum(times.forward_s) + sum(times.backward_s);
}

ComputeTimes scaled(ComputeTimes times, double factor) {
  times.data_s *= factor;
  for (auto* blocks : {&times.forward_s, &times.backward_s, &times.backward_weight_s})
    for (double& seconds : *blocks) seconds *= factor;
  return times;
}

// How much of each block's backward is for the gradients of parameters, which only schedules that split
// backward measure: the mean over the times that know it.
std::vector<double> weight_shares(const std::vector<ComputeTimes>& all) {
  std::vector<double> shares;
  double num_known = 0;
  for (const ComputeTimes& one : all) {
    if (one.backward_weight_s.empty()) continue;
    shares.resize(one.backward_s.size(), 0);
    ++num_known;
    for (size_t b = 0; b < shares.size(); ++b)
      shares[b] += one.backward_s[b] > 0 ? one.backward_weight_s[b] / one.backward_s[b] : 0;
  }
  for (double& share : shares) share /= num_known;
  return shares;
}

// Moment by moment.
ComputeTimes combined(const std::vector<ComputeTimes>& all,
                      const std::function<double(const std::vector<double>&)>& combine) {
  ComputeTimes result = all.front();
  const auto each = [&](auto&& moment) {
    std::vector<double> values;
    values.reserve(all.size());
    for (const ComputeTimes& one : all) values.push_back(moment(one));
    return combine(values);
  };
  result.data_s = each([](const ComputeTimes& t) { return t.data_s; });
  result.update_s = each([](const ComputeTimes& t) { return t.update_s; });
  for (size_t b = 0; b < result.forward_s.size(); ++b) {
    result.forward_s[b] = each([&](const ComputeTimes& t) { return t.forward_s[b]; });
    result.backward_s[b] = each([&](const ComputeTimes& t) { return t.backward_s[b]; });
  }
  result.backward_weight_s = weight_shares(all);
  for (size_t b = 0; b < result.backward_weight_s.size(); ++b)
    result.backward_weight_s[b] *= result.backward_s[b];
  return result;
}

// The times of each block on the rank where it takes longest, because stages have blocks of their own.
// `of_parameters` is the series "parameter_backward_time", or nullptr where the schedule does not split
// backward.
ComputeTimes moments_of_stages(const Series& moments, const Series* of_parameters) {
  const auto longest = [](const Series& series, int64_t column) {
    double seconds = 0;
    for (int64_t row = 0; row < series.rows; ++row) seconds = std::max(seconds, series.at(row, column));
    return seconds;
  };
  ComputeTimes times{.data_s = longest(moments, 0), .update_s = longest(moments, moments.columns - 1)};
  const int64_t num_blocks = (moments.columns - 2) / 2;
  for (int64_t b = 0; b < num_blocks; ++b) {
    times.forward_s.push_back(longest(moments, 1 + b));
    times.backward_s.push_back(longest(moments, 1 + num_blocks + b));
    if (of_parameters != nullptr && of_parameters->columns == num_blocks)
      times.backward_weight_s.push_back(longest(*of_parameters, b));
  }
  return times;
}

// The columns of block_time are: data, forward of each block, backward of each block, update. The rank
// whose moments add up to the most time stands for all, because the others wait for it.
ComputeTimes moments_of_slowest(const Series& series) {
  const auto total = [&](int64_t row) {
    double seconds = 0;
    for (int64_t column = 0; column < series.columns; ++column) seconds += series.at(row, column);
    return seconds;
  };
  int64_t slowest = 0;
  for (int64_t row = 1; row < series.rows; ++row)
    if (total(row) > total(slowest)) slowest = row;
  ComputeTimes times;
  const int64_t num_blocks = (series.columns - 2) / 2;
  times.data_s = series.at(slowest, 0);
  for (int64_t b = 0; b < num_blocks; ++b) {
    times.forward_s.push_back(series.at(slowest, 1 + b));
    times.backward_s.push_back(series.at(slowest, 1 + num_blocks + b));
  }
  times.update_s = series.at(slowest, series.columns - 1);
  return times;
}

ComputeTimes medians_of(const std::vector<const MeasuredCompute*>& points) {
  std::vector<ComputeTimes> times;
  times.reserve(points.size());
  for (const auto* one : points) times.push_back(one->times);
  return combined(times, [](const std::vector<double>& values) { return median(values); });
}

// As blocks that are cut like this instead, by their FLOPs.
ComputeTimes cut_again(ComputeTimes times, const specs::ModelTable& whole, const specs::Split& from,
                       const specs::Split& to) {
  if (from == to) return times;
  const specs::ModelTable before = specs::split_table(whole, from), after = specs::split_table(whole, to);
  for (size_t b = 0; b < times.forward_s.size(); ++b) {
    const double flops = before.blocks[b].forward_flops;
    const double share = flops > 0 ? after.blocks[b].forward_flops / flops : 1;
    times.forward_s[b] *= share;
    times.backward_s[b] *= share;
    if (!times.backward_weight_s.empty()) times.backward_weight_s[b] *= share;
  }
  return times;
}

// Between the two sizes next to it; in proportion beyond them. [size] -> times, not empty.
ComputeTimes at_batch(const std::map<double, ComputeTimes>& sizes, double batch) {
  const auto above = sizes.lower_bound(batch);
  if (above != sizes.end() && above->first == batch) return above->second;
  if (above == sizes.begin() || above == sizes.end()) {
    const auto& [size, times] = above == sizes.end() ? *sizes.rbegin() : *above;
    return scaled(times, batch / size);
  }
  const auto below = std::prev(above);
  const double share = (batch - below->first) / (above->first - below->first);
  return combined({below->second, above->second},
                  [&](const std::vector<double>& ends) { return ends[0] + share * (ends[1] - ends[0]); });
}

// How a rank's blocks are split, as far as it matters to what they compute.
specs::Split split_of_blocks(const Point& point) {
  specs::Split split = strategies::split_of(point);
  split.gathers_again = false;
  return split;
}

}  // namespace

bool communicates(const Point& point) {
  return point.ranks > 1 &&
         (point.ranks_per_copy() > 1 || strategies::traits_of(point.training.strategy.name).communicates);
}

ComputeTimes times_of_stage(const ComputeTimes& whole, const strategies::RankStep& step,
                            const strategies::Program& program, const strategies::Program& first) {
  ComputeTimes times{.data_s = whole.data_s, .update_s = whole.update_s};
  for (const specs::Chunk& chunk : step.input().all_chunks())
    for (int64_t b = chunk.first_block; b < chunk.first_block + chunk.end - chunk.begin; ++b) {
      times.forward_s.push_back(whole.forward_s[static_cast<size_t>(b)]);
      times.backward_s.push_back(whole.backward_s[static_cast<size_t>(b)]);
      if (!whole.backward_weight_s.empty())
        times.backward_weight_s.push_back(whole.backward_weight_s[static_cast<size_t>(b)]);
    }
  if (first.most_updated > 0)
    times.update_s *= static_cast<double>(program.most_updated) / static_cast<double>(first.most_updated);
  return times;
}

double owned_elements(const Point& point) {
  const strategies::Strategy& strategy = strategies::strategy(point.training.strategy.name);
  return static_cast<double>(strategy.step(strategies::RankStep(point).input()).most_updated);
}

std::optional<MeasuredCompute> measured_compute(const MergedPoint& merged, const Point& point) {
  const Series* series = merged.records.empty() ? nullptr : merged.records.front()->series("block_time");
  const auto table = known_table(point.training.model);
  if (series == nullptr || series->rows < 1 || !table ||
      series->columns != 2 + 2 * static_cast<int64_t>(table->blocks.size()))
    return std::nullopt;
  // Blocks were timed in steps in which nothing moves between ranks. In the timed steps communication takes
  // caches, memory bandwidth and cores from computing, so the blocks are scaled until a step of them lasts
  // as long as the measured step without its exposed communication. With stages this cannot be done: each
  // block counts by the rank that has it, no rank computes all of them, and exposed time includes the
  // bubble.
  const Measures& m = merged.measures;
  const double computing_s = m.step_s - m.exposed_s;
  const bool has_stages = point.training.pipeline > 1;
  ComputeTimes times =
      has_stages ? moments_of_stages(*series, merged.records.front()->series("parameter_backward_time"))
                 : moments_of_slowest(*series);
  const double all_s =
      static_cast<double>(point.training.accumulation) * micro_batch_s(times) + times.update_s;
  if (!(computing_s > 0) || !(all_s > 0)) return std::nullopt;
  if (has_stages)
    return MeasuredCompute{&merged, to_text(point.training.strategy), times, owned_elements(point)};
  times.update_s *= computing_s / all_s;
  return MeasuredCompute{&merged, to_text(point.training.strategy), scaled(times, computing_s / all_s),
                         owned_elements(point)};
}

ComputeCosts::ComputeCosts(std::vector<MeasuredCompute> measured) : measured_(std::move(measured)) {
  std::vector<double> activations;
  for (const MeasuredCompute& one : measured_) {
    // Points are put together if their blocks should take equally long: the same split of a block, the same
    // stages, as many ranks on a node, and communication beside it or not.
    const Point& point = one.merged->point;
    const specs::Split split = split_of_blocks(point);
    const auto same = [&](const Kind& kind) {
      return kind.communicates == communicates(point) && kind.ranks_per_node == one.merged->ranks_per_node &&
             kind.split == split && kind.stages == point.training.pipeline;
    };
    auto kind = std::find_if(kinds_.begin(), kinds_.end(), same);
    if (kind == kinds_.end())
      kind = kinds_.insert(
          kind, {communicates(point), one.merged->ranks_per_node, split, point.training.pipeline, {}});
    const auto size = static_cast<double>(point.training.batch_size);
    kind->batches[size].points.push_back(&one);
    // Only a rank that holds the whole model says what a sample's activations need.
    if (point.ranks_per_copy() == 1 && point.training.expert == 1)
      activations.push_back(one.merged->measures.activation_bytes() / size);
  }
  for (Kind& kind : kinds_)
    for (auto& [size, batch] : kind.batches) batch.medians = medians_of(batch.points);
  activation_bytes_per_sample_ = activations.empty() ? Measures::kNone : std::max(0.0, median(activations));
}

bool ComputeCosts::has_measured(specs::Split split) const {
  split.gathers_again = false;
  return std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) { return kind.split == split; });
}

const ComputeCosts::Kind* ComputeCosts::nearest(const Point& point, int64_t ranks_per_node,
                                                const MergedPoint* without) const {
  // Each condition outweighs all that follow it: first the split of blocks, then the stages, then
  // communication, then the ranks on a node.
  const auto distance = [&](const Kind& kind) {
    constexpr int64_t kFar = 1 << 24;
    const int64_t more = kind.ranks_per_node - ranks_per_node;
    // Fewer ranks share less: only where nothing else is there.
    return (more >= 0 ? more : kFar - more) + (kind.communicates == communicates(point) ? 0 : 2 * kFar) +
           (kind.stages == point.training.pipeline ? 0 : 4 * kFar) +
           (kind.split == split_of_blocks(point) ? 0 : 8 * kFar);
  };
  // Whether anything remains of the kind without the point that is left out.
  const auto is_left = [&](const Kind& kind) {
    const auto& batches = kind.batches;
    return batches.size() > 1 || batches.begin()->second.points.size() > 1 ||
           batches.begin()->second.points.front()->merged != without;
  };
  const Kind* nearest = nullptr;
  for (const Kind& kind : kinds_)
    if (is_left(kind) && (nearest == nullptr || distance(kind) < distance(*nearest))) nearest = &kind;
  return nearest;
}

std::optional<ComputeTimes> ComputeCosts::times(const Point& point, int64_t ranks_per_node,
                                                const specs::ModelTable& table,
                                                const MergedPoint* without) const {
  const Kind* kind = nearest(point, ranks_per_node, without);
  if (kind == nullptr) return std::nullopt;
  const std::string strategy = to_text(point.training.strategy);
  const specs::Split split = split_of_blocks(point);
  const bool is_laid_out_alike = kind->split == split && kind->stages == point.training.pipeline;
  // Three steps. The median over strategies at each batch, interpolated to the batch in question, is what
  // the family computes. A strategy that was measured beside others is slower or faster than this median by
  // some factor; the median of its factors over the batches applies. The update does not depend on the
  // batch: it is that of the strategy on as many ranks, or else follows from the elements that a rank owns.
  std::map<double, ComputeTimes> sizes;
  std::vector<double> factors, updates, rates;
  for (const auto& [size, batch] : kind->batches) {
    auto points = batch.points;
    const bool lacks_one = std::erase_if(points, [&](const auto* one) { return one->merged == without; }) > 0;
    if (points.empty()) continue;
    const ComputeTimes& medians = sizes[size] = lacks_one ? medians_of(points) : batch.medians;
    for (const auto* one : points) {
      if (one->owned_elements > 0) rates.push_back(one->times.update_s / one->owned_elements);
      if (one->strategy != strategy) continue;
      if (points.size() > 1) factors.push_back(micro_batch_s(one->times) / micro_batch_s(medians));
      if (one->merged->point.ranks == point.ranks && is_laid_out_alike)
        updates.push_back(one->times.update_s);
    }
  }
  ComputeTimes times = scaled(at_batch(sizes, static_cast<double>(point.training.batch_size)),
                              factors.empty() ? 1 : median(factors));
  times.update_s = !updates.empty() ? median(updates)
                   : rates.empty()  ? times.update_s
                                    : median(rates) * owned_elements(point);
  return cut_again(std::move(times), table, kind->split, split);
}

}  // namespace shardmark

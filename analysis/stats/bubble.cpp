// The programs of the stages, played with the times of their own blocks.
#include "analysis/stats/bubble.h"

#include <algorithm>
#include <numeric>

#include "analysis/frame/known.h"
#include "base/stats.h"
#include "specs/mesh.h"
#include "strategies/simulate.h"
#include "strategies/stages.h"

namespace shardmark {
namespace {

using strategies::ComputeTimes;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// The ranks of one stage, and means over them.
class RanksOfStage {
 public:
  RanksOfStage(const specs::Mesh& mesh, int64_t stage, int64_t ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (mesh.stage_of(rank) == stage) ranks_.push_back(rank);
  }
  // The mean over the ranks, of a column; 0 where the study has no such series.
  double mean(const Series* series, int64_t column) const {
    if (series == nullptr) return 0;
    double all = 0;
    for (const int64_t rank : ranks_) all += series->at(rank, column);
    return all / static_cast<double>(ranks_.size());
  }
  // The median over the steps of that mean.
  double median_step(const Series& series) const {
    std::vector<double> steps;
    for (int64_t column = 0; column < series.columns; ++column) steps.push_back(mean(&series, column));
    return median(std::move(steps));
  }

 private:
  std::vector<int64_t> ranks_;
};

// What a stage's blocks take in steps without communication, stretched to what the timed steps take.
ComputeTimes times_of_stage(const Record& record, const RanksOfStage& ranks,
                            const strategies::RankStep& step) {
  // The columns of block_time are: data, forward of each block, backward of each block, update. The blocks
  // were timed in steps in which nothing moves between ranks. In the timed steps they may take longer, so
  // all blocks of a phase are stretched by the same factor until they add up to the phase.
  const Series& moments = *record.series("block_time");
  const Series* of_parameters = record.series("parameter_backward_time");
  const int64_t num_blocks = (moments.columns - 2) / 2;
  ComputeTimes times;
  for (const specs::Chunk& chunk : step.input().all_chunks())
    for (int64_t b = chunk.first_block; b < chunk.first_block + chunk.end - chunk.begin; ++b) {
      times.forward_s.push_back(ranks.mean(&moments, 1 + b));
      times.backward_s.push_back(ranks.mean(&moments, 1 + num_blocks + b));
      if (of_parameters != nullptr) times.backward_weight_s.push_back(ranks.mean(of_parameters, b));
    }
  const auto micro_batches = static_cast<double>(record.point.training.accumulation);
  const auto stretch = [&](const char* phase, std::initializer_list<std::vector<double>*> all) {
    const double of_blocks = sum(**all.begin()) * micro_batches;
    const double factor = of_blocks > 0 ? ranks.median_step(*record.series(phase)) / of_blocks : 1;
    for (std::vector<double>* blocks : all)
      for (double& seconds : *blocks) seconds *= factor;
  };
  stretch("forward", {&times.forward_s});
  stretch("backward", {&times.backward_s, &times.backward_weight_s});
  times.data_s = ranks.median_step(*record.series("data")) / micro_batches;
  times.update_s = ranks.median_step(*record.series("optimizer"));
  return times;
}

// Plays the stages' programs with measured computing and operations that take no time. Whatever a stage
// then waits is due to the order of the schedule and to stages that compute for longer than others.
double bubble_of(const Record& record, const Point& point) {
  const strategies::Stages stages(point);
  const specs::Mesh mesh = specs::mesh_of(point);
  const auto micro_batches = static_cast<double>(point.training.accumulation);
  std::vector<strategies::SimulatedRank> simulated;
  std::vector<double> computing_s;  // [stage]
  for (size_t stage = 0; stage < stages.programs.size(); ++stage) {
    const strategies::Program& program = stages.programs[stage];
    const RanksOfStage ranks(mesh, static_cast<int64_t>(stage), point.ranks);
    const ComputeTimes times = times_of_stage(record, ranks, stages.steps[stage]);
    computing_s.push_back(micro_batches * (times.data_s + sum(times.forward_s) + sum(times.backward_s)) +
                          times.update_s);
    simulated.push_back({&program, times, std::vector<double>(program.calls.size(), 0.0)});
  }
  const double step_s = strategies::simulate(simulated, /*progress=*/1).step_s;
  // A rank waits for what the simulated step lasts beyond its own computing. The phases of a point are
  // those of the rank that was slowest in each step, so the bubble is that of the stage of this rank.
  const Series& steps = *record.series("step");
  std::vector<double> waited;
  for (int64_t column = 0; column < steps.columns; ++column) {
    int64_t slowest = 0;
    for (int64_t rank = 1; rank < steps.rows; ++rank)
      if (steps.at(rank, column) > steps.at(slowest, column)) slowest = rank;
    waited.push_back(step_s - computing_s[static_cast<size_t>(mesh.stage_of(slowest))]);
  }
  return median(std::move(waited));
}

bool has_times(const Record& record, const Point& point) {
  const Series* moments = record.series("block_time");
  const auto is_of_steps = [&](const char* name) {
    const Series* series = record.series(name);
    return series != nullptr && series->rows == point.ranks && series->columns > 0;
  };
  return moments != nullptr && moments->rows == point.ranks &&
         moments->columns == 2 + 2 * std::ssize(known_table(point.training.model)->blocks) &&
         is_of_steps("step") && is_of_steps("data") && is_of_steps("forward") && is_of_steps("backward") &&
         is_of_steps("optimizer");
}

}  // namespace

double bubble_s(const MergedPoint& merged) {
  if (merged.point.training.pipeline <= 1) return Measures::kNone;
  const auto point = known_point(merged.point);
  if (!point) return Measures::kNone;
  std::vector<double> seconds;
  for (const Record* record : merged.records)
    if (has_times(*record, *point)) seconds.push_back(bubble_of(*record, *point));
  return seconds.empty() ? Measures::kNone : median(std::move(seconds));
}

}  // namespace shardmark

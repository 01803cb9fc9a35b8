// A study computed from known links, known compute times and the actual programs of its points.
#pragma once

#include <gtest/gtest.h>

#include "analysis/frame/known.h"
#include "analysis/predict/stages.h"
#include "analysis/predict/tables.h"
#include "analysis_fixture.h"
#include "specs/specs.h"
#include "strategies/program_series.h"

namespace shardmark {

inline const specs::Network kTwoLinks{{2e-6, 1 / 20e9}, {10e-6, 1 / 2e9}};
inline constexpr int64_t kRanksPerNode = 2;
inline constexpr double kUpdatePerElement = 1e-9, kProgress = 0.4;

// Returns the true compute times of the blocks for the batch of a point.
inline ComputeTimes true_times(const specs::ModelTable& table, const Point& point) {
  const auto batch = static_cast<double>(point.training.batch_size);
  ComputeTimes times;
  times.data_s = 1e-4 * batch;
  for (size_t b = 0; b < table.blocks.size(); ++b) {
    times.forward_s.push_back(1e-3 * batch * static_cast<double>(b + 1));
    times.backward_s.push_back(2.5e-3 * batch * static_cast<double>(b + 1));
  }
  times.update_s = kUpdatePerElement * owned_elements(point);
  return times;
}

inline SimulatedStep true_step(const Point& point, const specs::Network& network = kTwoLinks) {
  const auto table = *known_table(point.training.model);
  const Stages stages(point);
  ComputeTimes times = true_times(table, point);
  const specs::ModelTable of_rank = specs::split_table(table, strategies::split_of(point));
  for (size_t b = 0; b < times.forward_s.size(); ++b) {
    const double flops = table.blocks[b].forward_flops;
    const double share = flops > 0 ? of_rank.blocks[b].forward_flops / flops : 1;
    times.forward_s[b] *= share, times.backward_s[b] *= share;
  }
  std::vector<strategies::SimulatedRank> ranks = simulated(stages, times);
  for (size_t stage = 0; stage < ranks.size(); ++stage)
    for (const auto& o : stages.programs[stage].calls)
      ranks[stage].operation_s.push_back(
          specs::collective_s(o.what, o.bytes, span_of(o, kRanksPerNode), network));
  return simulate(ranks, kProgress);
}

inline Record measured(const std::string& strategy, int64_t ranks, int64_t batch,
                       const Choice& model = small_gpt2()) {
  Record record = training_record(strategy, ranks, batch, 1);
  record.point.training.model = model;
  const auto table = *known_table(record.point.training.model);
  const SimulatedStep step = true_step(record.point);
  Measures& m = record.measures;
  m.step_s = step.step_s;
  m.step_low_s = 0.999 * step.step_s;
  m.step_high_s = 1.001 * step.step_s;
  m.exposed_s = step.exposed_s;
  const ComputeTimes times = true_times(table, record.point);
  Series block_time{"block_time", ranks, 2 + 2 * static_cast<int64_t>(table.blocks.size()), {}};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    block_time.values.push_back(times.data_s);
    for (const auto* blocks : {&times.forward_s, &times.backward_s})
      block_time.values.insert(block_time.values.end(), blocks->begin(), blocks->end());
    block_time.values.push_back(times.update_s);
  }
  record.samples.push_back(block_time);
  record.samples.push_back(strategies::to_series(strategies::strategy(record.point.training.strategy.name)
                                                     .step(strategies::RankStep(record.point).input())));
  record.id = point_id(record.point);
  return record;
}

inline StudyData study() {
  std::vector<Record> records;
  for (const int64_t ranks : {2, 4, 8}) {
    const specs::Span span{ranks, ranks / kRanksPerNode};
    for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter"})
      for (int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 4)
        records.push_back(
            collective_record(operation, ranks, bytes, true,
                              specs::collective_s(specs::collective(operation).what,
                                                  static_cast<double>(bytes), span, kTwoLinks)));
    for (const char* strategy : {"single", "ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)"})
      for (const int64_t batch : {2, 8}) records.push_back(measured(strategy, ranks, batch));
  }
  StudyData study = study_of(std::move(records));
  study.environment.world_ranks = 8;
  study.environment.devices.assign(8, "Some CPU");
  study.environment.nodes = {"a", "b", "c", "d"};
  study.environment.rank_nodes = {"a", "a", "b", "b", "c", "c", "d", "d"};
  return study;
}

class Predict : public ::testing::Test {
 protected:
  std::vector<StudyData> studies_ = {study()};
  MergedPoints points_ = merge_repeats(studies_);
  std::vector<Predictor> predictors_ = make_predictors(points_);

  const MergedPoint& like() const {
    return *std::find_if(points_.begin(), points_.end(), [](const auto& one) { return is_training(one); });
  }
  Point point(const std::string& strategy, int64_t ranks, int64_t batch) const {
    Point p = like().point;
    p.ranks = ranks;
    p.training.strategy = resolved_strategy(strategy);
    p.training.batch_size = batch;
    return p;
  }
};

}  // namespace shardmark

// A study like one from a cluster: training on 1 to 64 ranks, collectives of several sizes, a training run,
// and points that failed. It has 200 points with samples, with noise from a fixed seed.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/plots/plots.h"
#include "analysis/render/axis.h"
#include "analysis_fixture.h"

namespace shardmark {

// Adds step times of each rank around the median of the record. 2 % of the steps are stragglers.
inline void add_samples(Record& record, std::mt19937& random) {
  constexpr int64_t kSteps = 60;
  std::normal_distribution<double> noise(0, 0.012);
  std::uniform_real_distribution<double> chance(0, 1);
  Series steps{"step", std::min<int64_t>(record.point.ranks, 8), kSteps, {}};
  for (int64_t i = 0; i < steps.rows * kSteps; ++i)
    steps.values.push_back(record.measures.step_s * (1 + noise(random)) * (chance(random) < 0.02 ? 1.15 : 1));
  Measures& m = record.measures;
  m.step_p10_s = 0.985 * m.step_s;
  m.step_p90_s = 1.02 * m.step_s;
  m.step_p99_s = 1.16 * m.step_s;
  m.num_steps = kSteps;
  record.samples.push_back(std::move(steps));
}

inline void add_training(std::vector<Record>& records, std::mt19937& random, int64_t batch, bool strong) {
  const std::vector<std::pair<std::string, double>> strategies = {
      {"ddp", 0.02}, {"fsdp", 0.035}, {"fsdp(shard=gradients)", 0.03}, {"zero3", 0.05}};
  std::normal_distribution<double> noise(0, 0.01);
  for (int64_t ranks : {1, 2, 4, 8, 16, 32, 64}) {
    const auto n = static_cast<double>(ranks);
    const int64_t own = strong ? batch / ranks : batch;
    const double compute_s = 0.02 * static_cast<double>(own) + 0.004;
    for (const auto& [strategy, cost] : strategies) {
      const double exposed_s = cost * (1 - 1 / n) * (1 + 0.1 * std::log2(n));
      records.push_back(
          training_record(strategy, ranks, own, (compute_s + exposed_s) * (1 + noise(random)), exposed_s));
      records.back().point.training.scaling = strong ? "strong" : "weak";
      records.back().measures.oversubscribed = ranks == 64;
      add_samples(records.back(), random);
    }
  }
}

inline Record training_run(const std::string& strategy, int64_t num_steps) {
  Record record = training_record(strategy, 2, 8, 0.1);
  record.point.workload = "train";
  Series loss{"loss", 1, num_steps, {}}, at{"held_out_at", 1, 5, {}}, held_out{"held_out_loss", 1, 5, {}};
  for (int64_t step = 0; step < num_steps; ++step)
    loss.values.push_back(2.4 + 8 * std::exp(-static_cast<double>(step) / 150) +
                          0.1 * std::sin(static_cast<double>(step * step)));
  for (int64_t i = 1; i <= 5; ++i) {
    const int64_t step = i * num_steps / 5;
    at.values.push_back(static_cast<double>(step));
    held_out.values.push_back(2.6 + 8 * std::exp(-at.values.back() / 150));
  }
  record.measures.num_steps = num_steps;
  record.measures.loss_first = loss.values.front();
  record.measures.loss_last = loss.values.back();
  record.samples = {loss, at, held_out};
  record.id = point_id(record.point);
  return record;
}

inline StudyData study_of_200_points() {
  std::mt19937 random(5);
  std::vector<Record> records;
  add_training(records, random, 4, false);
  add_training(records, random, 16, false);
  add_training(records, random, 192, true);
  for (int64_t ranks : {1, 2, 4, 8}) records.push_back(training_record("single", ranks, 4, 0.083));
  double slower = 1;
  for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"}) {
    slower *= 1.3;
    for (int64_t ranks : {2, 8})
      for (int64_t bytes = 8; bytes <= int64_t{8} << 30; bytes *= 16)
        records.push_back(collective_record(
            operation, ranks, bytes, true,
            slower * (8e-6 + static_cast<double>(bytes) / 40e9) * std::sqrt(static_cast<double>(ranks))));
  }
  for (const char* strategy : {"ddp", "zero3"}) records.push_back(training_run(strategy, 900));
  while (records.size() < 200) {
    records.push_back(training_record("ddp", 128, static_cast<int64_t>(records.size()), 1));
    records.back().outcome = Outcome::skipped;
    records.back().reason = "needs 128 ranks, the world has 64";
  }
  StudyData study = study_of(std::move(records), "results/scaling.h5");
  study.environment.world_ranks = 64;
  study.environment.suite_path = "suites/scaling.yaml";
  study.environment.suite_text = "name: scaling\nranks: [1, 2]\n";
  study.environment.command_line = "shardmark run suites/scaling.yaml -o results/scaling.h5";
  *study.environment.versions = {{"torch", "2.11.0"}, {"MPI", "Open MPI 4.1.4"}};
  *study.environment.facts = {{"cores", 64}, {"processor", "Some CPU"}};
  return study;
}

inline Plots plots_of(const std::vector<Record>& records) { return make_plots({study_of(records)}); }

inline const Plot& plot_called(const Plots& plots, const std::string& key) {
  for (const Plot& plot : plots)
    if (plot.key == key) return plot;
  throw ContractError("no plot " + key);
}

inline std::vector<std::string> labels_of(const Axis& axis, const Range& range) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis_ticks(axis, range)) labels.push_back(tick.label);
  return labels;
}

inline size_t times_in(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

}  // namespace shardmark

// See sampler.h; the rules are in stopping.h.
#include "sweep/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats.h"
#include "sweep/gathered.h"
#include "sweep/stopping.h"
#include "sweep/sustained.h"

namespace shardmark {

Verdict Sampler::run(Record& record) {
  Verdict verdict = warm_up(record);
  if (!verdict.ok()) return verdict;
  if (sampling_.duration_s > 0) return sustain(group_, workload_, timer_, typical_step_s_, sink_, record);
  return sample(record);
}

Verdict Sampler::warm_up(Record& record) {
  WarmUp warm_up(sampling_);
  for (int64_t steps = sampling_.warmup_steps; steps > 0; steps = group_.broadcast(steps, 0)) {
    Verdict verdict = run_window(steps);
    if (!verdict.ok()) return verdict;
    if (group_.rank() != 0) continue;
    const auto worst = worst_steps();
    typical_step_s_ = median(worst);
    warm_up.add(worst);
    if (warm_up.done()) steps = 0;
  }
  record.measures.num_warmup = warm_up.num_steps();
  return {};
}

Verdict Sampler::sample(Record& record) {
  StoppingRule stopping(sampling_);
  // Without a warm-up the first step tells how long one takes.
  int64_t steps = typical_step_s_ > 0 ? stopping.next_window(typical_step_s_) : 1;
  while ((steps = group_.broadcast(steps, 0)) > 0) {
    Verdict verdict = run_window(steps);
    if (!verdict.ok()) return verdict;
    if (group_.rank() != 0) continue;
    const auto worst = worst_steps();
    stopping.add(worst);
    keep(record);
    steps = stopping.done() ? 0 : stopping.next_window(median(worst));
  }
  return {};
}

Verdict Sampler::run_window(int64_t steps) {
  Verdict verdict = timer_.run(steps, own_);
  if (!verdict.ok()) return verdict;
  std::vector<double> values;
  for (const auto& row : own_.phases) values.insert(values.end(), row.begin(), row.end());
  values.push_back(own_.energy_j);
  values.push_back(own_.wall_s);
  ranks_ = gather_rows(group_, values);
  return verdict;
}

std::vector<double> Sampler::worst_steps() const {
  std::vector<double> worst(static_cast<size_t>(own_.num_steps));
  for (const auto& rank : ranks_)
    for (size_t step = 0; step < worst.size(); ++step) worst[step] = std::max(worst[step], rank[step]);
  return worst;
}

void Sampler::keep(Record& record) const {
  const auto phases = workload_.phases();
  std::vector<Series> columns;
  for (size_t phase = 0; phase < phases.size(); ++phase)
    columns.push_back(
        columns_of(phases[phase], ranks_, static_cast<int64_t>(phase) * own_.num_steps, own_.num_steps));
  const auto after_phases = static_cast<int64_t>(phases.size()) * own_.num_steps;
  if (!std::isnan(ranks_.front()[static_cast<size_t>(after_phases)]))
    columns.push_back(columns_of("energy", ranks_, after_phases, 1));
  columns.push_back(columns_of("window", ranks_, after_phases + 1, 1));
  grow(record, columns);
  for (const auto& rank : ranks_) {
    const double timed = std::accumulate(rank.begin(), rank.begin() + own_.num_steps, 0.0);
    if (!is_accounted(timed, rank.back())) record.measures.unaccounted = true;
  }
}

}  // namespace shardmark

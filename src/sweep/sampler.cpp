// Runs windows of steps and keeps their times. Rank 0 decides between windows with the rules in stopping.h,
// from the time of each step on its slowest rank, and broadcasts the number of steps of the next window; 0
// ends the loop.
#include "sweep/sampler.h"

#include <cmath>
#include <numeric>

#include "base/stats.h"
#include "sweep/stopping.h"

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
    typical_step_s_ = median(worst_);
    warm_up.add(worst_);
    if (warm_up.done()) steps = 0;
  }
  record.measures.num_warmup = warm_up.num_steps();
  return {};
}

Verdict Sampler::sample(Record& record) {
  StoppingRule stopping(sampling_);
  phases_.resize(workload_.phases().size());
  Verdict verdict;
  // Without a warm-up, a window of one step measures how long a step takes.
  int64_t steps = typical_step_s_ > 0 ? stopping.next_window(typical_step_s_) : 1;
  while ((steps = group_.broadcast(steps, 0)) > 0) {
    verdict = run_window(steps);
    if (!verdict.ok()) break;
    keep();
    if (group_.rank() != 0) continue;
    stopping.add(worst_);
    steps = stopping.done() ? 0 : stopping.next_window(median(worst_));
  }
  gather(record);
  return verdict;
}

Verdict Sampler::run_window(int64_t steps) {
  Verdict verdict = timer_.run(steps, own_);
  if (verdict.ok()) worst_ = group_.max(own_.phases.front());
  return verdict;
}

void Sampler::keep() {
  for (size_t phase = 0; phase < phases_.size(); ++phase)
    phases_[phase].insert(phases_[phase].end(), own_.phases[phase].begin(), own_.phases[phase].end());
  energy_j_.push_back(own_.energy_j);
  wall_s_.push_back(own_.wall_s);
  preemptions_.push_back(own_.preemptions);
  const auto& steps = own_.phases.front();
  unaccounted_ |= !is_accounted(std::accumulate(steps.begin(), steps.end(), 0.0), own_.wall_s);
}

// Gathers one series after the other, so that rank 0 never holds two copies of all values.
void Sampler::gather(Record& record) const {
  record.measures.unaccounted = group_.max(static_cast<int64_t>(unaccounted_)) != 0;
  if (wall_s_.empty()) return;
  const auto add = [&](const std::string& name, const std::vector<double>& own) {
    std::vector<double> all = group_.gather(own);
    if (group_.rank() == 0) record.samples.push_back({name, group_.size(), std::ssize(own), std::move(all)});
  };
  const auto names = workload_.phases();
  for (size_t phase = 0; phase < names.size(); ++phase) add(names[phase], phases_[phase]);
  if (group_.broadcast(static_cast<int64_t>(!std::isnan(energy_j_.front())), 0) != 0)
    add("energy", energy_j_);
  add("window", wall_s_);
  add("preemptions", preemptions_);
}

}  // namespace shardmark

// Measures one point, from set-up to its record. At each stage all ranks agree on one verdict, so that a
// failure of one rank becomes the outcome of the point and leaves no rank waiting.
#include "sweep/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/stats.h"
#include "comm/in_step.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "schema/step_statistics.h"
#include "sweep/network_watch.h"
#include "sweep/stopping.h"
#include "sweep/sustained.h"
#include "sweep/verdict.h"
#include "sweep/window.h"
#include "sweep/workloads/reference.h"

namespace shardmark {
namespace {

// Runs steps until a point has warmed up, then until it has been measured enough: windows of steps, whose
// times are kept. Rank 0 decides between windows with the rules in stopping.h, from the time of each step on
// its slowest rank, and broadcasts the number of steps of the next window; 0 ends the loop.
class Sampler {
 public:
  Sampler(const WorkloadContext& context, Workload& workload, const ColumnsSink& sink, NetworkWatch& network)
      : sampling_(context.point.sampling),
        group_(context.group),
        workload_(workload),
        sink_(sink),
        network_(network),
        timer_(context, workload) {}

  // Fills the record's series on rank 0. Collective; all ranks return the same verdict.
  Verdict run(Record& record);

 private:
  Verdict warm_up(Record& record);
  Verdict sample(Record& record);
  Verdict run_window(int64_t steps);
  void keep();
  void gather(Record& record) const;

  const Sampling& sampling_;
  const HostGroup& group_;
  Workload& workload_;
  const ColumnsSink& sink_;
  NetworkWatch& network_;
  WindowTimer timer_;
  Window own_;                 // the last window on this rank
  std::vector<double> worst_;  // its steps, each on its slowest rank
  double typical_step_s_ = 0;  // on rank 0; 0: not yet known
  // This rank's values of all timed windows. Rank 0 gathers them once, at the end.
  std::vector<std::vector<double>> phases_;              // [phase][step]
  std::vector<double> energy_j_, wall_s_, preemptions_;  // [window]
  bool unaccounted_ = false;
};

Verdict Sampler::run(Record& record) {
  Verdict verdict = warm_up(record);
  if (!verdict.ok()) return verdict;
  network_.begin();
  if (sampling_.duration_s <= 0) return sample(record);
  verdict = sustain(group_, workload_, timer_, typical_step_s_, sink_, record);
  network_.stop();
  return verdict;
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
  network_.stop();
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

// Allocates and verifies the workload. Allocation has no collective calls, so a rank may fail in it alone.
// All ranks agree that everybody has its memory before any of them waits for another's call.
// `allocating_s` gets the time on this rank.
Verdict verify(const WorkloadContext& context, Workload& workload, Check& check, double& allocating_s) {
  Verdict verdict = agreed(context.group, context.heartbeat, "set-up", [&] {
    const meter::Strict strict;
    const double begin = now_s();
    workload.allocate();
    synchronize(context.comm.device());
    allocating_s = now_s() - begin;
  });
  if (!verdict.ok()) return verdict;
  const auto compare = [&] { check = workload.verify(); };
  verdict = agreed_in_step(context.group, context.heartbeat, "verification", compare,
                           [&] { return workload.failure(); });
  if (verdict.ok() && check.wrong) return {Outcome::wrong, check.text};
  return verdict;
}

// The parts of the time to the first step, each on its slowest rank. Collective.
void keep_start(const WorkloadContext& context, double making_s, double allocating_s, double first_step_s,
                Measures& measures) {
  if (std::isnan(first_step_s)) return;  // on all ranks
  const std::vector<double> slowest =
      context.group.max(std::vector<double>{context.communicators_s + making_s, allocating_s, first_step_s});
  const StartTimes& start = context.resources.start;
  measures.launcher_s = start.launcher_s;
  measures.program_s = start.program_s;
  measures.mpi_s = start.mpi_s;
  measures.communicators_s = slowest[0];
  measures.model_s = slowest[1];
  measures.first_step_s = slowest[2];
}

// `making_s`: what this rank took to make the workload.
Verdict measure(const WorkloadContext& context, Workload& workload, double making_s, const ColumnsSink& sink,
                Record& record, Check& check) {
  double allocating_s = 0;
  Verdict verdict = verify(context, workload, check, allocating_s);
  record.measures.verified = check.text;
  record.measures.verify_error = check.error;
  if (!verdict.ok()) return verdict;
  keep_start(context, making_s, allocating_s, workload.first_step_s(), record.measures);

  const auto failure = [&] { return workload.failure(); };
  NetworkWatch network(context.group, context.resources);
  verdict = Sampler(context, workload, sink, network).run(record);
  if (!verdict.ok()) return verdict;
  context.heartbeat.stage("collecting");
  network.end();
  if (const std::string trouble = workload.collect(record); !trouble.empty())
    return {Outcome::wrong, "wrong: " + trouble};
  verdict = workload.measure_checkpoints(record);
  if (!verdict.ok()) return verdict;
  const auto ablate = [&] { workload.measure_ablations(record); };
  verdict = agreed_in_step(context.group, context.heartbeat, "ablations", ablate, failure);
  if (!verdict.ok()) return verdict;
  if (context.group.rank() == 0) {
    summarize(record);
    network.fill(record.measures);
    workload.derive(record);
  }
  return {};
}

// Makes the workload and runs `what` on it, with the seconds that making it took on this rank. An exception
// outside of an agreed stage ends the job here, before the destructors of the workload's communicators could
// wait for other ranks.
Verdict with_workload(const WorkloadContext& context, const std::function<Verdict(Workload&, double)>& what) {
  const auto place = [&] { return context.heartbeat.place(); };
  context.heartbeat.stage("making communicators");
  std::unique_ptr<Workload> workload;
  return in_step(context.group.size(), place, [&] {
    const double begin = now_s();
    workload = make_workload(context);
    return what(*workload, now_s() - begin);
  });
}

// Verifies a point whose reference does not fit on one device: the same layout with as few layers as it can
// have. If that is not possible either, the point stays unverified.
Verdict verify_fewer_layers(const WorkloadContext& context, Record& record) {
  const std::optional<Point> fewer = with_fewest_layers(context.point);
  if (!fewer) return {};
  WorkloadContext smaller{
      *fewer, context.group, context.comm, context.resources, context.references, context.heartbeat};
  empty_caches(context.comm.device());
  Check check;
  double allocating_s = 0;
  const Verdict verdict = with_workload(
      smaller, [&](Workload& workload, double) { return verify(smaller, workload, check, allocating_s); });
  const std::string layers =
      fmt::format(" with {} of {} layers", fewer->training.model.options.at("layers").get<int64_t>(),
                  context.point.training.model.options.at("layers").get<int64_t>());
  if (check.wrong) return {Outcome::wrong, check.text + layers};
  if (!verdict.ok() || check.is_too_large) return {};
  record.measures.verified = check.text + layers;
  record.measures.verify_error = check.error;
  return {};
}

Verdict measure(const WorkloadContext& context, const ColumnsSink& sink, Record& record) {
  Check check;
  const Verdict verdict = with_workload(context, [&](Workload& workload, double making_s) {
    return measure(context, workload, making_s, sink, record, check);
  });
  return verdict.ok() && check.is_too_large ? verify_fewer_layers(context, record) : verdict;
}

}  // namespace

void add_reason(Record& record, const std::string& reason) {
  record.reason += (record.reason.empty() ? "" : "; ") + reason;
}

bool is_oversubscribed(const Resources& resources, const Point& point) {
  const auto local_ranks = std::min<int64_t>(resources.local_ranks, point.ranks);
  return local_ranks * resources.threads_per_rank > resources.num_cores;
}

Record measure_point(const WorkloadContext& context, const ColumnsSink& sink) {
  Record record;
  record.point = context.point;
  record.id = point_id(context.point);
  const double begin = now_s();
  meter::take_excess();  // forgets what happened before this point
  const Verdict verdict = measure(context, sink, record);
  record.outcome = verdict.outcome;
  record.reason = reason_of(verdict, context.point);
  record.duration_s = now_s() - begin;
  record.measures.oversubscribed = is_oversubscribed(context.resources, context.point);
  empty_caches(context.comm.device());
  if (record.outcome != Outcome::failed) context.comm.trim();
  const std::string copied = context.comm.take_copied();
  const Verdict all = agree(context.group, {copied.empty() ? Outcome::ok : Outcome::failed, copied});
  if (!all.ok()) add_reason(record, all.reason);
  return record;
}

}  // namespace shardmark

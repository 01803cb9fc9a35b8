// One point, from set-up to its record.
#include "runner/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats.h"
#include "device/device.h"
#include "device/energy.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "runner/stopping.h"
#include "runner/verdict.h"
#include "workloads/statistics.h"

namespace shardmark {
namespace {

// One window as rank 0 sees it: [rank] -> phases one after the other, each with num_steps values; then the
// energy and the wall time.
struct Window {
  int64_t num_steps = 0;
  std::vector<std::vector<double>> ranks;
};

class Sampler {
 public:
  Sampler(const WorkloadContext& context, Workload& workload, Watchdog& watchdog)
      : context_(context),
        group_(context.group),
        workload_(workload),
        watchdog_(watchdog),
        energy_(context.comm.device()) {}

  // Warms up and samples; fills the record's series on rank 0.
  Verdict run(Record& record) {
    WarmUp warm_up(context_.point.sampling);
    StoppingRule stopping(context_.point.sampling);
    double typical_step_s = 0;
    bool warm = context_.point.sampling.warmup_steps == 0;
    for (int64_t steps = warm ? 1 : context_.point.sampling.warmup_steps; steps > 0;) {
      const Verdict verdict = run_window(steps);
      if (!verdict.ok()) return verdict;
      if (group_.rank() == 0) {
        const auto worst = worst_steps();
        typical_step_s = median(worst);
        if (warm) {
          stopping.add(worst);
          keep(record);
        } else {
          warm_up.add(worst);
        }
        const bool was_warm = std::exchange(warm, warm || warm_up.done());
        if (warm && !was_warm) record.measures.num_warmup = warm_up.num_steps();
        steps = !warm ? steps : stopping.done() ? 0 : stopping.next_window(typical_step_s);
      }
      steps = group_.broadcast(steps, 0);
    }
    return {};
  }

 private:
  Verdict run_window(int64_t steps) {
    std::vector<double> values;
    workload_.begin_window();
    const double energy_before_j = energy_.read_j();
    group_.barrier();
    const double begin = now_s();
    const Verdict mine = attempt([&] {
      for (int64_t i = 0; i < steps; ++i) {
        workload_.step();
        watchdog_.beat("step");
      }
      for (const auto& row : workload_.end_window()) values.insert(values.end(), row.begin(), row.end());
    });
    const double wall_s = now_s() - begin;
    values.push_back(energy_.read_j() - energy_before_j);
    values.push_back(wall_s);
    const Verdict verdict = agree(group_, mine);
    if (!verdict.ok()) return verdict;
    gather(steps, values);
    return {};
  }

  void gather(int64_t steps, const std::vector<double>& values) {
    const auto all = group_.gather(values);
    window_ = {steps, {}};
    for (auto rank = all.begin(); rank != all.end(); rank += static_cast<std::ptrdiff_t>(values.size()))
      window_.ranks.emplace_back(rank, rank + static_cast<std::ptrdiff_t>(values.size()));
  }

  std::vector<double> worst_steps() const {
    std::vector<double> worst(static_cast<size_t>(window_.num_steps));
    for (const auto& rank : window_.ranks)
      for (size_t step = 0; step < worst.size(); ++step) worst[step] = std::max(worst[step], rank[step]);
    return worst;
  }

  // Appends the window to the record's series: rows are ranks, so every row grows at its end.
  void keep(Record& record) {
    const auto phases = workload_.phases();
    for (size_t phase = 0; phase < phases.size(); ++phase)
      append(record, phases[phase], static_cast<int64_t>(phase) * window_.num_steps, window_.num_steps);
    const auto after_phases = static_cast<int64_t>(phases.size()) * window_.num_steps;
    if (!std::isnan(window_.ranks.front()[static_cast<size_t>(after_phases)]))
      append(record, "energy", after_phases, 1);
    append(record, "window", after_phases + 1, 1);
    for (const auto& rank : window_.ranks) {
      const double timed = std::accumulate(rank.begin(), rank.begin() + window_.num_steps, 0.0);
      // 1 %, and what a clock and a barrier's exit may add to a very short window.
      if (std::abs(rank.back() - timed) > 0.01 * rank.back() + 2e-4) record.measures.unaccounted = true;
    }
  }

  void append(Record& record, const std::string& name, int64_t begin, int64_t count) {
    auto found = std::find_if(record.samples.begin(), record.samples.end(),
                              [&](const Series& series) { return series.name == name; });
    if (found == record.samples.end()) {
      record.samples.push_back({name, static_cast<int64_t>(window_.ranks.size()), 0, {}});
      found = record.samples.end() - 1;
    }
    std::vector<double> values;
    for (int64_t row = 0; row < found->rows; ++row) {
      const auto old = found->values.begin() + row * found->columns;
      const auto added = window_.ranks[static_cast<size_t>(row)].begin() + begin;
      values.insert(values.end(), old, old + found->columns);
      values.insert(values.end(), added, added + count);
    }
    found->values = std::move(values);
    found->columns += count;
  }

  const WorkloadContext& context_;
  const HostGroup& group_;
  Workload& workload_;
  Watchdog& watchdog_;
  EnergyMeter energy_;
  Window window_;
};

Verdict measure(const WorkloadContext& context, Watchdog& watchdog, Record& record) {
  std::unique_ptr<Workload> workload;
  watchdog.beat("set-up");
  Verdict verdict = agree(context.group, attempt([&] {
                            const meter::Strict strict;
                            workload = make_workload(context);
                          }));
  if (!verdict.ok()) return verdict;

  watchdog.beat("verification");
  Check check;
  verdict = agree(context.group, attempt([&] { check = workload->verify(); }));
  if (!verdict.ok()) return verdict;
  record.measures.verified = check.text;
  record.measures.verify_error = check.error;
  if (check.wrong) return {Outcome::wrong, check.text};

  verdict = Sampler(context, *workload, watchdog).run(record);
  if (!verdict.ok()) return verdict;
  watchdog.beat("collecting");
  workload->collect(record);
  watchdog.beat("twins");
  verdict = agree(context.group, attempt([&] { workload->measure_twins(record); }));
  if (!verdict.ok()) return verdict;
  if (context.group.rank() == 0) {
    summarize(record);
    workload->derive(record);
  }
  return {};
}

}  // namespace

Record measure_point(const WorkloadContext& context, Watchdog& watchdog) {
  Record record;
  record.point = context.point;
  record.id = point_id(context.point);
  const double begin = now_s();
  meter::take_excess();  // of what was before this point
  const Verdict verdict = measure(context, watchdog, record);
  record.outcome = verdict.outcome;
  record.reason = verdict.reason;
  record.duration_s = now_s() - begin;
  const int local_ranks =
      static_cast<int>(std::min<int64_t>(context.placement.local_ranks, context.point.ranks));
  record.measures.oversubscribed =
      local_ranks * context.placement.threads_per_rank > context.placement.num_cores;
  empty_caches(context.comm.device());
  if (record.outcome != Outcome::failed) context.comm.trim();
  return record;
}

}  // namespace shardmark

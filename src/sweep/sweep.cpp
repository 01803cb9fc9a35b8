// Runs the points of a plan one after the other. Rank 0 alone knows the study. It tells the others which
// points are finished already, writes every record as soon as its point is over, and broadcasts the outcome,
// so that all ranks take the same path.
#include "sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/utc.h"
#include "schema/file.h"
#include "strategies/brief_text.h"
#include "sweep/communicators.h"
#include "sweep/environment.h"
#include "sweep/measure.h"
#include "sweep/progress.h"
#include "sweep/search.h"
#include "sweep/study_writer.h"
#include "sweep/workloads/auto_strategy.h"

namespace shardmark {
namespace {

Record skipped(const Point& point) {
  Record record;
  record.point = point;
  record.id = point_id(point);
  record.outcome = Outcome::skipped;
  record.reason = point.impossible;
  return record;
}

// Carries the state of a sweep from point to point.
class Walk {
 public:
  Walk(const HostGroup& world, Study* study, const Resources& resources, const RunOptions& options,
       Watchdog& watchdog, const std::vector<Point>& to_do, int64_t num_before)
      : world_(world),
        study_(study),
        writer_(study),
        watchdog_(watchdog),
        resources_(resources),
        options_(options),
        heartbeat_(watchdog.heartbeat()),
        communicators_(world, options, resources.communication(), heartbeat_),
        progress_(to_do, num_before, world.rank() == 0 ? options.progress : ProgressOn::nothing) {
    if (study != nullptr)
      watchdog_.on_finding([this](const std::string& reason) { writer_.time_out(reason); });
  }
  ~Walk() { watchdog_.on_finding({}); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Measures and stores a point unless the study already has it. Returns its outcome, which is the same on
  // every rank. Collective over the world.
  Outcome visit(const Point& point) {
    const auto [is_finished, before] = finished(point);
    if (is_finished) {
      ++summary_.num_before;
      summary_.num_bad += is_bad(before);
      return before;
    }
    Record record = skipped(point);
    record.started = utc_now();
    if (world_.rank() == 0) record.attempts = 1 + writer_.before(record.id).attempts;
    if (point.impossible.empty()) {
      const bool was_begun = study_ != nullptr && study_->known().contains(record.id);
      begin(record);
      measure(record, was_begun);
      if (world_.rank() == 0) remember_first_attempt(record);
    }
    ++(point.impossible.empty() ? summary_.num_measured : summary_.num_skipped);
    summary_.num_bad += is_bad(record.outcome);
    store(record);
    if (searched_ == nullptr) progress_.count();
    return outcome_of_rank_0(record);
  }

  // Searches for the largest batch that fits. Each batch tried is a point of its own. An outcome other than
  // ok or out_of_memory ends the search.
  void search(const Point& point) {
    searched_ = &point;
    LargestBatch largest;
    while (const int64_t batch = largest.next()) {
      Point attempt = point;
      attempt.training.batch_size = batch;
      const Outcome outcome = visit(attempt);
      if (outcome != Outcome::ok && outcome != Outcome::out_of_memory) break;
      largest.report(batch, outcome == Outcome::ok);
    }
    searched_ = nullptr;
    progress_.count();
  }

  RunSummary summary() const {
    RunSummary of_rank_0 = summary_;
    of_rank_0.num_bad = world_.broadcast(summary_.num_bad, 0);  // outcomes of points differ between ranks
    return of_rank_0;
  }

 private:
  // Whether the study has a final record of the point, and its outcome. Rank 0 alone knows the study and
  // broadcasts it.
  std::pair<bool, Outcome> finished(const Point& point) const {
    constexpr int64_t kNot = -1;
    int64_t outcome = kNot;
    if (study_ != nullptr) {
      const Known known = writer_.before(point_id(point));
      if (known.is_over()) outcome = static_cast<int64_t>(known.outcome);
    }
    outcome = world_.broadcast(outcome, 0);
    return {outcome != kNot, outcome == kNot ? Outcome::ok : static_cast<Outcome>(outcome)};
  }

  Outcome outcome_of_rank_0(const Record& record) const {
    return static_cast<Outcome>(world_.broadcast(static_cast<int64_t>(record.outcome), 0));
  }

  std::string transport_of(const Point& point) const {
    return point.transport.empty() ? options_.transport : point.transport;
  }

  void remember_first_attempt(Record& record) const {
    if (record.attempts == 1) return;
    const Known first = writer_.before(record.id);
    record.reason += fmt::format("{}first attempt {}: {}", record.reason.empty() ? "" : "; ",
                                 to_text(first.outcome), first.reason);
  }

  // For a collective that runs together with a load: the counts of units and operations that the study has
  // from the first repetition, so that all repetitions measure the same round. Zeros if there are none.
  RoundCounts round_of(Point point) const {
    if (point.workload != "collective" || point.collective.beside == "alone") return {};
    RoundCounts counts;
    if (study_ != nullptr) {
      const int64_t own = point.repeat;
      for (point.repeat = 0; point.repeat < own && !counts.are_known(); ++point.repeat) {
        const Known known = writer_.before(point_id(point));
        counts = {known.num_load_units, known.num_operations};
      }
    }
    return {world_.broadcast(counts.units, 0), world_.broadcast(counts.operations, 0)};
  }

  // Resolves the strategy `auto` by probing the network, on a communicator of its own.
  Settled settle(const Point& point) {
    if (!needs_settling(point)) return {point, {}, 0};
    auto& current = communicators_.get(point.ranks, transport_of(point), /*unused=*/false);
    return current.comm ? settle_strategy(point, current.group, *current.comm, probes_)
                        : Settled{point, {}, 0};
  }

  // Measures the point and fills its record. was_begun counts on rank 0: an earlier run of this study began
  // the point.
  void measure(Record& record, bool was_begun) {
    const Point point = record.point;
    progress_.begin(searched_ == nullptr ? point : *searched_, point);
    if (world_.rank() == 0 && options_.on_begin) options_.on_begin(point);
    heartbeat_.begin_point(brief_text(point));
    const std::string trace = trace_of(record, was_begun);
    const Settled settled = settle(point);
    // Training measures memory, so it begins with a communicator that nothing has used.
    const double begin = now_s();
    auto& current =
        communicators_.get(point.ranks, transport_of(point), /*unused=*/point.workload != "collective");
    const double communicators_s = now_s() - begin;
    const RoundCounts round = round_of(point);
    if (current.comm) {
      Record measured = measure_point({settled.point, current.group, *current.comm, resources_, references_,
                                       heartbeat_, trace, round, communicators_s},
                                      [this](const std::vector<Series>& columns) {
                                        if (study_ != nullptr) writer_.extend(columns);
                                      });
      measured.point = point;
      measured.id = record.id;
      measured.started = record.started;
      measured.attempts = record.attempts;
      record = std::move(measured);
      if (!settled.reason.empty()) {
        record.point.training.chosen = to_text(settled.point.training.strategy);
        add_reason(record, settled.reason);
        if (settled.communication_s > 0) record.measures.probed_communication_s = settled.communication_s;
      }
      if (options_.check_collectives)
        add_reason(record, "collectives were checked (--check-collectives): its times are meaningless");
    }
    heartbeat_.rest();
    world_.sleep_barrier();  // ranks that do not take part sleep here
    heartbeat_.begin_point("between points");
  }

  // Returns the path of the point's trace; the same on all ranks. A trace that an earlier attempt of this
  // study left is replaced. Any other existing file is kept, and then the point gets no trace.
  std::string trace_of(const Record& record, bool was_begun) const {
    if (options_.trace_directory.empty() || record.point.workload != "training") return {};
    const std::string path = trace_path(options_.trace_directory, record.point);
    const bool is_free = options_.overwrites_traces || was_begun || !file_exists(path);
    if (world_.broadcast(static_cast<int64_t>(is_free), 0) != 0) return path;
    if (world_.rank() == 0)
      log_warning(path + " exists and is kept, so this point gets no trace; to replace it: --overwrite");
    return {};
  }

  void begin(Record record) {
    record.point.transport = transport_of(record.point);
    record.measures.oversubscribed = is_oversubscribed(resources_, record.point);
    write([&] { writer_.begin(record); });
  }

  void store(Record& record) {
    if (world_.rank() == 0) record.point.transport = transport_of(record.point);
    write([&] { writer_.end(record); });
    if (world_.rank() == 0) progress_.end(record);
  }

  // Lets rank 0 change the study. If that fails, the run ends on all ranks.
  void write(const std::function<void()>& change) {
    std::string trouble;
    if (world_.rank() == 0) {
      try {
        change();
      } catch (const std::exception& error) {
        trouble = error.what();
      }
    }
    trouble = world_.broadcast(trouble, 0);
    if (!trouble.empty()) throw StudyLost(trouble);
  }

  const HostGroup& world_;
  Study* study_;  // nullptr except on rank 0
  StudyWriter writer_;
  Watchdog& watchdog_;
  const Resources& resources_;
  const RunOptions& options_;
  Heartbeat& heartbeat_;
  PointCommunicators communicators_;
  ReferenceCache references_;
  ProbeCache probes_;
  Progress progress_;
  RunSummary summary_;
  const Point* searched_ = nullptr;  // the planned point whose search is running
};

std::vector<Point> unfinished(const std::vector<Point>& points, const Study* study) {
  std::vector<Point> left;
  for (const Point& point : points) {
    if (study != nullptr)
      if (const auto found = study->known().find(point_id(point));
          found != study->known().end() && found->second.is_over())
        continue;
    left.push_back(point);
  }
  return left;
}

}  // namespace

std::string trace_path(const std::string& directory, const Point& planned) {
  return fmt::format("{}/{}-{}-ranks-{}.json", directory, planned.training.strategy.name, planned.ranks,
                     point_id(planned));
}

RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Resources& resources, const RunOptions& options, Watchdog& watchdog) {
  Study* const own = study ? &*study : nullptr;
  const std::vector<Point> to_do = unfinished(points, own);
  Walk walk(world, own, resources, options, watchdog, to_do, std::ssize(points) - std::ssize(to_do));
  watchdog.heartbeat().begin_point("between points");
  const RunSummary summary = in_step(
      world.size(), [&] { return watchdog.heartbeat().place(); },
      [&] {
        for (const Point& point : points) {
          if (point.training.batch_size == kLargest && point.impossible.empty())
            walk.search(point);
          else
            walk.visit(point);
        }
        return walk.summary();
      });
  watchdog.heartbeat().end_point();
  return summary;
}

}  // namespace shardmark

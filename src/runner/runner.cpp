// The walk over the points.
#include "runner/runner.h"

#include <algorithm>

#include "base/error.h"
#include "laws/short_text.h"
#include "plan/search.h"
#include "runner/environment.h"
#include "runner/measure.h"
#include "runner/progress.h"
#include "workloads/auto_strategy.h"

namespace shardmark {
namespace {

// The first n ranks of the world with their transport; made once and kept, because making one is slow on a
// big machine.
struct Party {
  HostGroup group;
  std::unique_ptr<Communicator> comm;  // nullptr on ranks that are left out
};

class Parties {
 public:
  Parties(const HostGroup& world, at::Device device, MovedBy moved_by)
      : world_(world), device_(device), moved_by_(moved_by) {}

  // Collective over the world.
  Party& get(int64_t ranks, const std::string& transport) {
    const auto key = std::pair(ranks, transport);
    const auto found = parties_.find(key);
    if (found != parties_.end()) return found->second;
    const bool in = world_.rank() < ranks;
    Party party{world_.split(in ? 0 : -1, world_.rank()), nullptr};
    if (in) party.comm = make_communicator(transport, party.group, device_, moved_by_);
    return parties_.emplace(key, std::move(party)).first->second;
  }

 private:
  const HostGroup& world_;
  at::Device device_;
  MovedBy moved_by_;
  std::map<std::pair<int64_t, std::string>, Party> parties_;
};

Record skipped(const Point& point) {
  Record record;
  record.point = point;
  record.id = point_id(point);
  record.outcome = Outcome::skipped;
  record.reason = point.impossible;
  return record;
}

bool is_bad(Outcome outcome) { return outcome == Outcome::wrong || outcome == Outcome::failed; }

class Walk {
 public:
  Walk(const HostGroup& world, Study* study, const Placement& placement, const RunOptions& options,
       Watchdog& watchdog, int64_t num_points)
      : world_(world),
        study_(study),
        placement_(placement),
        options_(options),
        watchdog_(watchdog),
        parties_(world, options.device, placement.communication()),
        progress_(num_points, options.quiet || world.rank() != 0) {}

  // Measures and stores a point unless the study holds it already; what became of it, on every rank.
  // Collective over the world.
  Outcome visit(const Point& point) {
    const auto [is_finished, before] = finished(point);
    if (is_finished) return before;
    Record record = skipped(point);
    const std::string started = utc_now();
    if (point.impossible.empty()) record = measured(point);
    record.started = started;
    ++summary_.num_points;
    summary_.num_bad += is_bad(record.outcome);
    store(record);
    if (!searching_) progress_.count();
    return outcome_of_rank_0(record);
  }

  // The batches that a search tries, each a point of its own. What is neither ok nor out of memory ends it.
  void search(const Point& point) {
    searching_ = true;
    LargestBatch largest;
    while (const int64_t batch = largest.next()) {
      Point attempt = point;
      attempt.training.batch_size = batch;
      const Outcome outcome = visit(attempt);
      if (outcome != Outcome::ok && outcome != Outcome::out_of_memory) break;
      largest.tell(batch, outcome == Outcome::ok);
    }
    searching_ = false;
    progress_.count();
  }

  RunSummary summary() const {
    return {world_.broadcast(summary_.num_points, 0), world_.broadcast(summary_.num_bad, 0)};
  }

 private:
  // Of the study, which rank 0 alone knows.
  std::pair<bool, Outcome> finished(const Point& point) const {
    constexpr int64_t kNot = -1;
    int64_t outcome = kNot;
    if (study_ != nullptr) {
      const auto found = study_->finished().find(point_id(point));
      if (found != study_->finished().end()) outcome = static_cast<int64_t>(found->second);
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

  Record measured(const Point& point) {
    progress_.begin(point);
    watchdog_.watch(laws::short_text(point));
    Record record = skipped(point);
    Party& party = parties_.get(point.ranks, transport_of(point));
    if (party.comm) {
      const Settled settled = settle_strategy(point, party.group, *party.comm, probes_);
      record = measure_point({settled.point, party.group, *party.comm, placement_, references_}, watchdog_);
      record.point = point;
      record.id = point_id(point);
      if (!settled.reason.empty()) {
        record.point.training.chosen = to_text(settled.point.training.strategy);
        record.reason += (record.reason.empty() ? "" : "; ") + settled.reason;
      }
    }
    watchdog_.rest();
    world_.sleep_barrier();  // ranks that are left out sleep here
    return record;
  }

  void store(Record& record) {
    std::string trouble;
    if (world_.rank() == 0) {
      record.point.transport = transport_of(record.point);
      progress_.end(record);
      try {
        study_->append(record);
      } catch (const std::exception& error) {
        trouble = error.what();
      }
    }
    trouble = world_.broadcast(trouble, 0);
    if (!trouble.empty()) throw SystemError(trouble);
  }

  const HostGroup& world_;
  Study* study_;  // on rank 0 only
  const Placement& placement_;
  const RunOptions& options_;
  Watchdog& watchdog_;
  Parties parties_;
  ReferenceCache references_;
  ProbeCache probes_;
  Progress progress_;
  RunSummary summary_;
  bool searching_ = false;
};

int64_t num_unfinished(const std::vector<Point>& points, const Study* study) {
  if (study == nullptr) return 0;
  return std::count_if(points.begin(), points.end(),
                       [&](const Point& point) { return !study->finished().contains(point_id(point)); });
}

}  // namespace

RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Placement& placement, const RunOptions& options, Watchdog& watchdog) {
  Study* const own = study ? &*study : nullptr;
  Walk walk(world, own, placement, options, watchdog, num_unfinished(points, own));
  for (const Point& point : points) {
    if (point.training.batch_size == kLargest && point.impossible.empty())
      walk.search(point);
    else
      walk.visit(point);
  }
  return walk.summary();
}

}  // namespace shardmark

// The walk over the points.
#include "runner/runner.h"

#include "base/error.h"
#include "laws/short_text.h"
#include "runner/environment.h"
#include "runner/measure.h"
#include "runner/progress.h"

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

// What rank 0 knows of finished points, as one bit per point, told to all.
std::vector<bool> to_run(const HostGroup& world, const std::vector<Point>& points,
                         const std::optional<Study>& study) {
  std::string wanted;
  if (world.rank() == 0)
    for (const auto& point : points) wanted += study->finished_ids().contains(point_id(point)) ? '0' : '1';
  wanted = world.broadcast(wanted, 0);
  std::vector<bool> bits;
  for (const char bit : wanted) bits.push_back(bit == '1');
  return bits;
}

}  // namespace

RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Placement& placement, const RunOptions& options, Watchdog& watchdog) {
  Parties parties(world, options.device, placement.communication());
  ReferenceCache references;
  const std::vector<bool> wanted = to_run(world, points, study);
  RunSummary summary;
  summary.num_points = std::count(wanted.begin(), wanted.end(), true);
  Progress progress(summary.num_points, options.quiet || world.rank() != 0);

  for (size_t i = 0; i < points.size(); ++i) {
    if (!wanted[i]) continue;
    const Point& point = points[i];
    Record record = skipped(point);
    const std::string started = utc_now();
    if (point.impossible.empty()) {
      progress.begin(point);
      watchdog.watch(laws::short_text(point));
      Party& party = parties.get(point.ranks, point.transport.empty() ? options.transport : point.transport);
      if (party.comm)
        record = measure_point({point, party.group, *party.comm, placement, references}, watchdog);
      watchdog.rest();
      world.sleep_barrier();  // ranks that are left out sleep here
    }
    record.started = started;

    std::string trouble;
    if (world.rank() == 0) {
      record.point.transport = point.transport.empty() ? options.transport : point.transport;
      progress.end(record);
      summary.num_bad += record.outcome == Outcome::wrong || record.outcome == Outcome::failed;
      try {
        study->append(record);
      } catch (const std::exception& error) {
        trouble = error.what();
      }
    }
    trouble = world.broadcast(trouble, 0);
    if (!trouble.empty()) throw SystemError(trouble);
  }
  summary.num_bad = world.broadcast(summary.num_bad, 0);
  return summary;
}

}  // namespace shardmark

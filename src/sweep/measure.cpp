// One point, from set-up to its record.
#include "sweep/measure.h"

#include <algorithm>

#include "comm/in_step.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "schema/step_statistics.h"
#include "sweep/sampler.h"
#include "sweep/verdict.h"

namespace shardmark {
namespace {

// Ranks make communicators together, take their memory alone, and agree that all have it before anybody waits
// for another's call.
Verdict measure(const WorkloadContext& context, Workload& workload, const ColumnsSink& sink, Record& record) {
  Verdict verdict = agreed(context.group, context.heartbeat, "set-up", [&] {
    const meter::Strict strict;
    workload.allocate();
  });
  if (!verdict.ok()) return verdict;

  const auto failure = [&] { return workload.failure(); };
  Check check;
  const auto verify = [&] { check = workload.verify(); };
  verdict = agreed_in_step(context.group, context.heartbeat, "verification", verify, failure);
  if (!verdict.ok()) return verdict;
  record.measures.verified = check.text;
  record.measures.verify_error = check.error;
  if (check.wrong) return {Outcome::wrong, check.text};

  verdict = Sampler(context, workload, sink).run(record);
  if (!verdict.ok()) return verdict;
  context.heartbeat.stage("collecting");
  if (const std::string trouble = workload.collect(record); !trouble.empty())
    return {Outcome::wrong, "wrong: " + trouble};
  const auto ablate = [&] { workload.measure_ablations(record); };
  verdict = agreed_in_step(context.group, context.heartbeat, "ablations", ablate, failure);
  if (!verdict.ok()) return verdict;
  if (context.group.rank() == 0) {
    summarize(record);
    workload.derive(record);
  }
  return {};
}

// What is thrown between the stages ends the job before the workload's communicators and memory go.
Verdict measure(const WorkloadContext& context, const ColumnsSink& sink, Record& record) {
  const auto place = [&] { return context.heartbeat.place(); };
  context.heartbeat.stage("making communicators");
  std::unique_ptr<Workload> workload;
  return in_step(context.group.size(), place, [&] {
    workload = make_workload(context);
    return measure(context, *workload, sink, record);
  });
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
  meter::take_excess();  // of what was before this point
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

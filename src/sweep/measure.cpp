// Measures one point, from set-up to its record. At each stage all ranks agree on one verdict, so that a
// failure of one rank becomes the outcome of the point and leaves no rank waiting.
#include "sweep/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "comm/in_step.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "schema/step_statistics.h"
#include "sweep/sampler.h"
#include "sweep/verdict.h"
#include "sweep/workloads/reference.h"

namespace shardmark {
namespace {

// Allocates and verifies the workload. Allocation has no collective calls, so a rank may fail in it alone.
// All ranks agree that everybody has its memory before any of them waits for another's call.
Verdict verify(const WorkloadContext& context, Workload& workload, Check& check) {
  Verdict verdict = agreed(context.group, context.heartbeat, "set-up", [&] {
    const meter::Strict strict;
    workload.allocate();
  });
  if (!verdict.ok()) return verdict;
  const auto compare = [&] { check = workload.verify(); };
  verdict = agreed_in_step(context.group, context.heartbeat, "verification", compare,
                           [&] { return workload.failure(); });
  if (verdict.ok() && check.wrong) return {Outcome::wrong, check.text};
  return verdict;
}

Verdict measure(const WorkloadContext& context, Workload& workload, const ColumnsSink& sink, Record& record,
                Check& check) {
  Verdict verdict = verify(context, workload, check);
  record.measures.verified = check.text;
  record.measures.verify_error = check.error;
  if (!verdict.ok()) return verdict;

  const auto failure = [&] { return workload.failure(); };
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

// Makes the workload and runs `what` on it. An exception outside of an agreed stage ends the job here, before
// the destructors of the workload's communicators could wait for other ranks.
Verdict with_workload(const WorkloadContext& context, const std::function<Verdict(Workload&)>& what) {
  const auto place = [&] { return context.heartbeat.place(); };
  context.heartbeat.stage("making communicators");
  std::unique_ptr<Workload> workload;
  return in_step(context.group.size(), place, [&] {
    workload = make_workload(context);
    return what(*workload);
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
  const Verdict verdict =
      with_workload(smaller, [&](Workload& workload) { return verify(smaller, workload, check); });
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
  const Verdict verdict = with_workload(
      context, [&](Workload& workload) { return measure(context, workload, sink, record, check); });
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

// Checks that refuse a sweep before its first point begins.
#include "cli/run/sweep_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "comm/transports.h"
#include "data/source.h"
#include "executor/precision.h"
#include "specs/model_table.h"

namespace shardmark {

void check_data(const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const auto& point : points) {
    if (point.workload != "training" || !point.impossible.empty()) continue;
    const auto& t = point.training;
    if (!seen.insert(to_text(t.data) + to_text(t.model)).second) continue;
    make_source(t.data,
                {specs::model_table(t.model)->sample, precision_from(t.precision, t.reduce_dtype).compute,
                 point.seed, /*holds_out=*/false, point.folder});
  }
}

void check_transports(const std::vector<Point>& points, const std::string& transport, at::Device device) {
  for (const auto& point : points) {
    if (!point.impossible.empty()) continue;
    const std::string name = choice_from_text(point.transport.empty() ? transport : point.transport).name;
    if (name == "nccl" && !device.is_cuda()) throw UsageError(kNeedsGpu);
    if (name == "pt2pt" && device.is_cuda()) throw UsageError(kNeedsHost);
  }
}

void refuse_unused(const RunFlags& run, const Suite& suite, const std::vector<Point>& plan) {
  const auto is_traced = [](const Point& point) {
    return point.workload == "training" && point.impossible.empty();
  };
  if (!run.trace.empty() && std::none_of(plan.begin(), plan.end(), is_traced))
    throw UsageError(fmt::format(
        "--trace {} changes nothing here: traces are of training points, and {} has none that can run; leave "
        "it out",
        run.trace, suite.path));
  const auto names_its_own = [](const Point& point) { return !point.transport.empty(); };
  if (run.world.transport != "auto" && std::all_of(plan.begin(), plan.end(), names_its_own))
    throw UsageError(fmt::format(
        "--transport {} changes nothing here: every point of {} names its transport; leave one of them out",
        run.world.transport, suite.path));
}

}  // namespace shardmark

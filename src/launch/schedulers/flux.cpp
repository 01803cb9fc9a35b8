// The script for `flux batch`, as RFC 36 of the Flux Framework describes its directives.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "launch/schedulers/job_text.h"

namespace shardmark {
namespace {

const std::vector<std::pair<char, const char*>> kLongFluxNames = {
    {'B', "bank"}, {'N', "nodes"}, {'n', "nslots"}, {'q', "queue"}, {'t', "time-limit"}, {'x', "exclusive"}};

}  // namespace

std::string flux_job(const JobOptions& o) {
  require_one_line(o.suites.front());
  Directives all("#flux: ");
  all.set("job-name", job_name(o));
  all.set("nodes", std::to_string(o.nodes));
  all.set("exclusive", "");
  if (o.gpus_per_node > 0) all.set("gpus-per-slot", std::to_string(o.gpus_per_node));  // a slot is a node
  all.comment(o.time_reason);
  all.set("time-limit", fmt::format("{:.0f}m", std::ceil(o.time_limit_s / 60)));
  ENSURE(all.set_asked("output", kResultsOfJobs + std::string("/flux-{{id}}.log")), "a value without quotes");
  const std::vector<SubmitFlag> flags = parsed_flags(o.submit_flags, kLongFluxNames);
  refuse_time_limit(flags, "time-limit");
  all.set_flags(flags);
  std::string text = "#!/usr/bin/env bash\n";
  text += "# Written by `shardmark submit --to flux`. Whatever ends it, every finished point is kept.\n" +
          all.text() + "set -euo pipefail\n\n" + environment_lines(o, "flux");
  text += "job=$(flux job id --to=dec \"$(flux getattr jobid)\")\n";
  return text + resubmitting_lines(o, "", "flux --parent batch");
}

}  // namespace shardmark

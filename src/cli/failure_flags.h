// Flags about failures of nodes, shared by predict and report. --restart asks for goodput; the other flags
// need it.
#pragma once

#include "analysis/stats/goodput.h"
#include "cli/values.h"

namespace shardmark {

inline constexpr const char* kFailureFlags[] = {"--restart", "--failures", "--checkpoint-write",
                                                // --watts is not among them: it affects tables only.
                                                "--checkpoint-read"};

inline void add_failure_flags(CLI::App& app, FailureQuery& query) {
  constexpr Duration kPause{values::kDuration.most, /*is_open=*/false};
  constexpr Real kWatts{0, 1e6, /*is_open=*/true};
  CLI::Option* const restart =
      add_value(app, "--restart", query.restart_s, kPause,
                "time from a failure until ranks read their checkpoint: adds goodput, the share of time that "
                "failures leave, with the best checkpoint interval");
  restart->group("Failures");
  for (CLI::Option* option :
       {add_value(app, "--failures", query.per_node_hour, FailureRate{},
                  fmt::format("of a node, in an hour; default: {}", kPublishedFailures.front().name)),
        add_value(app, "--checkpoint-write", query.write_s, values::kDuration,
                  "time to write a checkpoint; default: as training runs of the studies measured"),
        add_value(app, "--checkpoint-read", query.read_s, kPause, "time to read one; default: the same"),
        add_value(app, "--watts", query.watts, kWatts,
                  "power of a rank, for the energy of tokens; default: as GPUs measured")})
    option->needs(restart)->group("Failures");
}

}  // namespace shardmark

// A rank's verdict on a point, and the verdict that all ranks agree on. A rank that failed and left the point
// by itself would leave the others waiting in their next collective: a deadlock.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "comm/host_group.h"
#include "comm/watch/heartbeat.h"
#include "schema/record.h"

namespace shardmark {

struct Verdict {
  Outcome outcome = Outcome::ok;
  std::string reason;
  int rank = -1;  // the rank that gave the reason, after agree()
  bool ok() const { return outcome == Outcome::ok; }
};

// Runs a function that may throw on this rank alone, while no other rank waits for it. Running out of memory
// becomes the outcome out_of_memory, other exceptions become `failed`. A SystemError other than OutOfMemory
// is thrown on: then ranks can no longer agree. A lost GPU ends the job here (comm/nccl/lost_gpu.h).
Verdict attempt(const std::function<void()>& body);

// Returns the worst verdict of all ranks, with the reason of the lowest rank that has it. Collective.
Verdict agree(const HostGroup& group, const Verdict& mine);

// The reason as text. In a pipeline it includes the stage of the rank, counted from 0: "rank 1 (pipeline
// stage 1): ...".
std::string reason_of(const Verdict& verdict, const Point& point);

// Runs one stage of a point and returns one verdict for all ranks. The watchdog knows which ranks are in the
// stage and which wait. If there are several ranks, an exception that `attempt` does not catch ends the job.
Verdict agreed(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
               const std::function<void()>& body);

// The same for a stage in which ranks wait for each other's calls: with several ranks, any exception from
// `body` ends the job (comm/in_step.h). failure() returns the error that this rank met while it continued
// with its calls.
Verdict agreed_in_step(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
                       const std::function<void()>& body, const std::function<std::exception_ptr()>& failure);

}  // namespace shardmark

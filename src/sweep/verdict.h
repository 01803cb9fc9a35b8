// A rank's verdict on a point so far, and the one that all ranks agree on, without which they would deadlock.
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
  int rank = -1;  // whose reason it is, where ranks have agreed
  bool ok() const { return outcome == Outcome::ok; }
};

// Runs something that may throw on this rank alone, while no other waits for it. Out of memory is an outcome;
// the rest is `failed`. A failure of the system (SystemError that is no OutOfMemory) passes through: no
// agreement is possible any more. A lost GPU ends the job here (comm/nccl/lost_gpu.h).
Verdict attempt(const std::function<void()>& body);

// The worst verdict of all ranks, with the reason of the lowest rank that has it. Collective.
Verdict agree(const HostGroup& group, const Verdict& mine);

// The reason; in a pipeline with the rank's stage, counted from 0: "rank 1 (pipeline stage 1): ...".
std::string reason_of(const Verdict& verdict, const Point& point);

// One stage of a point, and one verdict of all ranks on it; the watchdog knows who is in it and who waits.
// What `attempt` passes on ends the job of several ranks.
Verdict agreed(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
               const std::function<void()>& body);

// The same for a stage in which ranks wait for each other's calls: whatever body throws ends the job of
// several ranks (comm/in_step.h). failure(): what this rank has failed by while it went on with its calls.
Verdict agreed_in_step(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
                       const std::function<void()>& body, const std::function<std::exception_ptr()>& failure);

}  // namespace shardmark

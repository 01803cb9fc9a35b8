// Decides whether the programs of a pipeline's stages finish a step, or deadlock, on a given transport.
// serving.cpp plays the programs of all stages together, without clocks.
//
// A rank starts operations on several communicators. Each communicator serves its own operations in the order
// in which they were started. Between communicators, transports follow one of three rules:
//   own           No order between communicators. MPI.
//   launch_order  An operation waits until the one that the rank started before it has begun. NCCL from
//                 2.26 on with NCCL_LAUNCH_ORDER_IMPLICIT=1, if driver and runtime are CUDA 12.3 or newer.
//   serial        An operation waits until the one that the rank started before it has ended. NCCL before
//                 2.26, or with an older driver or runtime, or with that variable set to 0.
// Source: NCCL's src/enqueue.cc (getImplicitOrder). A message ends when both ends have begun it, because NCCL
// does not promise to buffer anything.
#pragma once

#include <string>
#include <vector>

#include "schema/choice.h"
#include "strategies/pipeline.h"
#include "strategies/program.h"

namespace shardmark::strategies {

// Why the programs of a pipeline's stages ([stage]) do not finish a step, in one line: a message does not
// match what its other end expects, is never started there, or ranks deadlock. Empty if they finish.
std::string wrong_between(const std::vector<Program>& stages, Serving serving);

// The same for the messages of a schedule alone, whatever the model and the strategy are. This suffices
// because all other operations are among ranks that do the same at the same time.
std::string schedule_waits(const Choice& schedule, int64_t stages, int64_t micro_batches, Serving serving);

}  // namespace shardmark::strategies

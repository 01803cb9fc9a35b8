// Whether the programs of a pipeline's stages end a step, by the order in which a transport serves
// operations.
//
// A rank starts operations of several communicators. Each communicator serves its own in the order of their
// starts. Between communicators there are three rules:
//   own           nothing else. MPI.
//   launch_order  an operation begins when the one that the rank started before it has begun. NCCL with
//                 NCCL_LAUNCH_ORDER_IMPLICIT=1 from 2.26 on, where driver and runtime have CUDA 12.3.
//   serial        an operation begins when the one that the rank started before it has ended. NCCL
//   before 2.26, or
//                 with an older driver or runtime, or with that variable set to 0.
// Source: NCCL's src/enqueue.cc (getImplicitOrder). A message ends when both its ends have begun: NCCL
// promises to buffer no more.
#pragma once

#include <string>
#include <vector>

#include "schema/choice.h"
#include "strategies/pipeline.h"
#include "strategies/program.h"

namespace shardmark::strategies {

// What keeps the programs of a pipeline's stages ([stage]) from ending a step: a message that its other end
// expects to be another one or never starts, or ranks that wait for each other; one line. Empty where nothing
// does.
std::string wrong_between(const std::vector<Program>& stages, Serving serving);

// The same of a schedule's messages alone, whatever the model and the strategy: other operations are among
// ranks that do the same at the same time.
std::string schedule_waits(const Choice& schedule, int64_t stages, int64_t micro_batches, Serving serving);

}  // namespace shardmark::strategies

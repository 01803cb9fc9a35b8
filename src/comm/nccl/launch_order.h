// Note [Order of launches]
// Kernels of several communicators that run at once wait for their peers on other GPUs, and can wait for ever
// unless every GPU starts them in one order. The host's order is the same on every rank: a program's
// instructions are, and stages of operations are enqueued when their operation starts. NCCL keeps a device to
// the host's order with NCCL_LAUNCH_ORDER_IMPLICIT, from 2.26 on; kernels still overlap. With a runtime or a
// driver whose CUDA is older than 12.3 it runs one after the other instead (src/enqueue.cc,
// getImplicitOrder). There, where NCCL is older, and where a user has set the variable to 0, all
// communicators of the process use one stream, and nothing overlaps. Pipelines other than gpipe cannot be
// then: strategies/serving.h.
#pragma once

#include "strategies/pipeline.h"

namespace shardmark {

// launch_order or serial. nccl_version: as ncclGetVersion counts. cuda_version: the older one of runtime and
// driver, as cudaRuntimeGetVersion counts. variable: NCCL_LAUNCH_ORDER_IMPLICIT, or nullptr.
strategies::Serving nccl_serving(int nccl_version, int cuda_version, const char* variable);

// Of this process. Sets the variable where nobody has: before the first communicator, when NCCL reads it.
strategies::Serving nccl_serving();

}  // namespace shardmark

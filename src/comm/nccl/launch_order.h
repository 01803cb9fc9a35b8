// Note [Order of launches]
// When kernels of several communicators run at the same time, each waits for its peers on other GPUs. Unless
// every GPU starts them in the same order, they can deadlock. On the host the order is the same on every
// rank, because every rank runs the same instructions of a program, and because all stages of an operation
// are enqueued when the operation starts. From 2.26 on NCCL makes the device follow the order of the host if
// NCCL_LAUNCH_ORDER_IMPLICIT is set, and kernels still overlap. If the CUDA of the runtime or of the driver
// is older than 12.3, NCCL runs the kernels one after the other instead (src/enqueue.cc, getImplicitOrder).
// In that case, with an older NCCL, or if the user has set the variable to 0, all communicators of the
// process use one stream, and nothing overlaps. Of the pipeline schedules only gpipe works then:
// strategies/serving.h.
#pragma once

#include "strategies/pipeline.h"

namespace shardmark {

// Returns launch_order or serial. nccl_version is encoded as by ncclGetVersion. cuda_version is the older of
// runtime and driver, encoded as by cudaRuntimeGetVersion. variable is the value of
// NCCL_LAUNCH_ORDER_IMPLICIT, or nullptr if it is not set.
strategies::Serving nccl_serving(int nccl_version, int cuda_version, const char* variable);

// The order in this process. Sets the variable if the user has not. Call it before the first communicator is
// made, because NCCL reads the variable then.
strategies::Serving nccl_serving();

}  // namespace shardmark

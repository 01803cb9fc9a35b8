// Note [Order of launches]
// Kernels of several communicators that run at once wait for their peers on other GPUs, and can wait for ever
// unless every GPU starts them in one order. The host's order is the same on every rank: a program's
// instructions are, and stages of operations are enqueued when their operation starts. NCCL keeps a device to
// the host's order with NCCL_LAUNCH_ORDER_IMPLICIT, from 2.26 on; kernels still overlap. Where NCCL is older,
// or a user has set the variable to 0, all communicators of the process use one stream, and nothing overlaps.
#pragma once

namespace shardmark {

enum class LaunchOrder { of_nccl, one_stream };

// nccl_version: as ncclGetVersion counts. variable: NCCL_LAUNCH_ORDER_IMPLICIT, or nullptr.
LaunchOrder launch_order(int nccl_version, const char* variable);

// Of this process. Sets the variable where nobody has: before the first communicator, when NCCL reads it.
LaunchOrder launch_order();

}  // namespace shardmark

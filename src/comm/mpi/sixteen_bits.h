// Reductions of 16-bit floating-point numbers for MPI, which has no type for them.
#pragma once

#include <ATen/ATen.h>
#include <mpi.h>

#include "comm/communicator.h"

namespace shardmark {

// An operation on elements of MPI_UINT16_T that hold values of `type` (float16 or bfloat16). Each pair is
// combined in float and rounded, so a sum of n ranks is rounded n-1 times. An average is a sum.
MPI_Op sixteen_bit_op(ReduceOp op, at::ScalarType type);

}  // namespace shardmark

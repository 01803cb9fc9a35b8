// Functions that MPI calls on pieces of two buffers.
#include "comm/mpi/sixteen_bits.h"

#include "comm/host_group.h"

namespace shardmark {
namespace {

template <class T, ReduceOp op>
void combine(void* in, void* in_out, int* length, MPI_Datatype*) {
  const T* __restrict const from = static_cast<const T*>(in);
  T* __restrict const to = static_cast<T*>(in_out);
  for (int i = 0; i < *length; ++i) {
    const auto a = static_cast<float>(from[i]), b = static_cast<float>(to[i]);
    if constexpr (op == ReduceOp::min)
      to[i] = static_cast<T>(b < a ? b : a);
    else if constexpr (op == ReduceOp::max)
      to[i] = static_cast<T>(a < b ? b : a);
    else
      to[i] = static_cast<T>(a + b);
  }
}

// Lives until MPI is finalized, which frees it.
template <class T, ReduceOp op>
MPI_Op made() {
  static const MPI_Op created = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_CHECK(MPI_Op_create(&combine<T, op>, /*commute=*/1, &made));
    return made;
  }();
  return created;
}

template <class T>
MPI_Op op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return made<T, ReduceOp::sum>();
    case ReduceOp::min:
      return made<T, ReduceOp::min>();
    case ReduceOp::max:
      return made<T, ReduceOp::max>();
  }
  return MPI_OP_NULL;
}

}  // namespace

MPI_Op sixteen_bit_op(ReduceOp op, at::ScalarType type) {
  return type == at::kHalf ? op_of<at::Half>(op) : op_of<at::BFloat16>(op);
}

}  // namespace shardmark

// The reduction kernels. They work in blocks of a fixed length, which lets the compiler vectorise every loop
// and keeps the accumulators in the L1 cache.
#include "comm/mpi/reduce.h"

#include <type_traits>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr int64_t kBlock = 1024;

template <class T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<at::Half> {
  using Type = float;
};
template <>
struct Accumulator<at::BFloat16> {
  using Type = float;
};

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    // Integers wrap around. Repeated sums in place may overflow, and that must stay defined.
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};

// Length is an integral constant for whole blocks and a number for the rest.
template <class T, class Op, class Length>
void reduce_block(T* out, const std::vector<const void*>& sources, int64_t begin, Length length,
                  int divisor) {
  using A = typename Accumulator<T>::Type;
  A sum[kBlock];
  const T* __restrict first = static_cast<const T*>(sources[0]) + begin;
  for (int64_t i = 0; i < length; ++i) sum[i] = static_cast<A>(first[i]);
  for (size_t s = 1; s < sources.size(); ++s) {
    const T* __restrict source = static_cast<const T*>(sources[s]) + begin;
    for (int64_t i = 0; i < length; ++i) sum[i] = Op::apply(sum[i], static_cast<A>(source[i]));
  }
  if (divisor > 1) {
    for (int64_t i = 0; i < length; ++i) sum[i] = sum[i] / static_cast<A>(divisor);
  }
  T* __restrict result = out + begin;
  for (int64_t i = 0; i < length; ++i) result[i] = static_cast<T>(sum[i]);
}

template <class T, class Op>
void reduce_typed(void* out, const std::vector<const void*>& sources, int64_t numel, int divisor) {
  const int64_t whole = numel / kBlock * kBlock;
  const auto full = std::integral_constant<int64_t, kBlock>{};
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    reduce_block<T, Op>(static_cast<T*>(out), sources, begin, full, divisor);
  }
  reduce_block<T, Op>(static_cast<T*>(out), sources, whole, numel - whole, divisor);
}

template <class T>
void reduce_op(void* out, const std::vector<const void*>& sources, int64_t numel, ReduceOp op,
               int num_averaged) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_typed<T, Sum>(out, sources, numel, 1);
    case ReduceOp::average:
      return reduce_typed<T, Sum>(out, sources, numel, num_averaged);
    case ReduceOp::min:
      return reduce_typed<T, Min>(out, sources, numel, 1);
    case ReduceOp::max:
      return reduce_typed<T, Max>(out, sources, numel, 1);
  }
}

}  // namespace

void reduce_sources(void* out, const std::vector<const void*>& sources, int64_t numel, at::ScalarType dtype,
                    ReduceOp op, int num_averaged) {
  switch (dtype) {
    case at::kFloat:
      return reduce_op<float>(out, sources, numel, op, num_averaged);
    case at::kDouble:
      return reduce_op<double>(out, sources, numel, op, num_averaged);
    case at::kHalf:
      return reduce_op<at::Half>(out, sources, numel, op, num_averaged);
    case at::kBFloat16:
      return reduce_op<at::BFloat16>(out, sources, numel, op, num_averaged);
    case at::kInt:
      return reduce_op<int32_t>(out, sources, numel, op, num_averaged);
    case at::kLong:
      return reduce_op<int64_t>(out, sources, numel, op, num_averaged);
    default:
      ENSURE(false, std::string("no reduction of ") + at::toString(dtype));
  }
}

}  // namespace shardmark

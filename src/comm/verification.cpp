// Patterns of integers that every dtype adds exactly, the results of operations on them, and the comparison.
#include "comm/verification.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "base/error.h"
#include "device/device.h"

namespace shardmark {
namespace {

using specs::CollectiveRow;
using specs::Holds;

constexpr int kRoot = 0;

// The period of the pattern. It is prime, so no chunk or shard boundary falls on a multiple of it, and
// misplaced data does not match.
constexpr int64_t kPeriod = 4099;
constexpr int kFirstOctave = 32;

// Below rank 32 the value is a hash of rank and position, from -2 to 2. From there on, an octave has 32 x
// 2^k ranks, and at any position every (2 x 2^k)-th of them, which are 16, holds 1 or -1 by turns. The
// others hold 0.
int value_at(int rank, int64_t position) {
  if (rank < kFirstOctave) {
    const uint64_t mixed =
        (static_cast<uint64_t>(position) * 2654435761U) ^ (static_cast<uint64_t>(rank) * 40503U << 7);
    return static_cast<int>((mixed * 0x9E3779B97F4A7C15U >> 40) % 5) - 2;
  }
  const int octave =
      std::bit_width(static_cast<unsigned>(rank / kFirstOctave)) - 1;  // 32..63: 0, 64..127: 1, ...
  const int64_t spacing = int64_t{2} << octave;
  if ((rank + position) % spacing != 0) return 0;
  return (rank + position) / spacing % 2 == 0 ? 1 : -1;
}

// Returns numel values of value(position), repeated with the period. They are float64 until the final
// conversion to dtype.
at::Tensor tiled(int64_t numel, at::ScalarType dtype, int64_t round,
                 const std::function<double(int64_t)>& value) {
  const int64_t length = std::clamp<int64_t>(numel, 1, kPeriod);
  const at::Tensor period = at::empty({length}, at::kDouble);
  for (int64_t i = 0; i < length; ++i) period.data_ptr<double>()[i] = value((i + 911 * round) % kPeriod);
  return period.to(dtype).repeat({(numel + length - 1) / length}).narrow(0, 0, numel).contiguous();
}

double combine(double a, double b, ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// This rank's own shard of a whole tensor.
at::Tensor own_shard(const Communicator& comm, const at::Tensor& whole) {
  const int64_t shard = whole.numel() / comm.size();
  return whole.narrow(0, comm.rank() * shard, shard);
}

// What all ranks give to this rank, concatenated in rank order.
at::Tensor of_all_ranks(const Communicator& comm, const std::function<at::Tensor(int rank)>& given) {
  std::vector<at::Tensor> parts;
  parts.reserve(static_cast<size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) parts.push_back(given(rank));
  return at::cat(parts);
}

}  // namespace

Call prepare(Communicator& comm, Collective what, int64_t numel, at::ScalarType dtype, ReduceOp op,
             bool in_place, std::shared_ptr<const specs::Parts> parts) {
  const CollectiveRow& row = specs::collective(what);
  if (row.reduces && op == ReduceOp::average && !at::isFloatingType(dtype))
    throw UsageError("average of int32 is not exact; use sum, min or max");
  if (in_place && !row.in_place) throw UsageError(row.name + " does not work in place");
  const int rank = comm.rank(), size = comm.size();
  Call call{what, {}, {}, op, kRoot, (rank + size - 1) % size, (rank + 1) % size, std::move(parts)};
  if (call.parts != nullptr) {
    call.in = comm.allocate(call.parts->sent_by(rank), dtype);
    call.out = comm.allocate(call.parts->received_by(rank), dtype);
    return call;
  }
  const bool sends = call.uses_in(rank), receives = call.uses_out(rank);
  const int64_t whole = row.is_cut() ? numel / size * size : numel;
  const auto side = [&](Holds holds) {
    return comm.allocate(holds == Holds::shard ? whole / size : whole, dtype);
  };
  if (in_place && sends && receives) {
    const at::Tensor both = side(Holds::whole);
    const auto view = [&](Holds holds) { return holds == Holds::shard ? own_shard(comm, both) : both; };
    call.in = view(row.in);
    call.out = view(row.out);
    return call;
  }
  if (sends) call.in = side(row.in);
  if (receives) call.out = side(row.out);
  return call;
}

at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round) {
  return tiled(numel, dtype, round, [rank](int64_t position) { return value_at(rank, position); });
}

at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op) {
  return tiled(numel, dtype, round, [num_ranks, op](int64_t position) {
    double value = value_at(0, position);
    for (int rank = 1; rank < num_ranks; ++rank) value = combine(value, value_at(rank, position), op);
    return op == ReduceOp::average ? value / num_ranks : value;
  });
}

at::Tensor expected(const Communicator& comm, const Call& call, int64_t round) {
  if (!call.uses_out(comm.rank())) return {};
  const CollectiveRow& row = specs::collective(call.what);
  const auto dtype = call.out.scalar_type();
  const int64_t whole = call.out.numel() * (row.out == Holds::shard ? comm.size() : 1);
  const auto given = [&](int rank, int64_t numel) { return pattern(rank, numel, dtype, round); };
  if (row.in == Holds::pair) return given(call.from, whole);
  if (call.parts != nullptr)
    return of_all_ranks(comm, [&](int rank) {
      int64_t at = 0;
      for (int other = 0; other < comm.rank(); ++other) at += call.parts->between(rank, other);
      return given(rank, call.parts->sent_by(rank)).narrow(0, at, call.parts->between(rank, comm.rank()));
    });
  if (row.in == Holds::chunk_per_rank)
    return of_all_ranks(comm, [&](int rank) { return own_shard(comm, given(rank, whole)); });
  const at::Tensor all = row.reduces ? reduced_pattern(comm.size(), whole, dtype, round, call.op)
                         : row.in == Holds::shard
                             ? of_all_ranks(comm, [&](int r) { return given(r, whole / comm.size()); })
                             : given(call.root, whole);
  return row.out == Holds::shard ? own_shard(comm, all) : all;
}

void fill(const Communicator& comm, const Call& call, int64_t round) {
  constexpr int kNoResult = 99;
  if (call.out.defined()) call.out.fill_(kNoResult);
  if (!call.in.defined()) return;
  call.in.copy_(pattern(comm.rank(), call.in.numel(), call.in.scalar_type(), round));
}

int64_t num_wrong(const Communicator& comm, const Call& call, int64_t round) {
  const at::Tensor right = expected(comm, call, round);
  if (!right.defined()) return 0;
  const at::Tensor wanted = right.to(call.out.device());
  const bool exact = call.op != ReduceOp::average || (comm.size() & (comm.size() - 1)) == 0;
  if (exact) return item<int64_t>(call.out.ne(wanted).sum());
  const std::map<at::ScalarType, double> epsilon = {
      {at::kFloat, 0x1p-23}, {at::kDouble, 0x1p-52}, {at::kHalf, 0x1p-10}, {at::kBFloat16, 0x1p-7}};
  const double tolerance = 4 * epsilon.at(call.out.scalar_type());
  // The test is "not within" instead of "beyond", so that NaN counts as wrong.
  const at::Tensor within = (call.out.to(at::kDouble) - wanted.to(at::kDouble)).abs().le(tolerance);
  return item<int64_t>(within.logical_not().sum());
}

ReduceOp reduce_op(const std::string& name) {
  if (name == "sum" || name == "none") return ReduceOp::sum;
  if (name == "average") return ReduceOp::average;
  if (name == "min") return ReduceOp::min;
  if (name == "max") return ReduceOp::max;
  throw UsageError("unknown reduction '" + name + "'; known: sum, average, min, max");
}

at::ScalarType element_type(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types = {{"float32", at::kFloat},
                                                              {"float16", at::kHalf},
                                                              {"bfloat16", at::kBFloat16},
                                                              {"float64", at::kDouble},
                                                              {"int32", at::kInt}};
  const auto found = types.find(name);
  if (found != types.end()) return found->second;
  throw UsageError("unknown element type '" + name + "'; known: float32, float16, bfloat16, float64, int32");
}

}  // namespace shardmark

// The nine rows.
#include "comm/collectives.h"

#include "base/error.h"
#include "comm/pattern.h"

namespace shardmark {
namespace {

constexpr int kRoot = 0;

double one(int) { return 1; }
double all_but_own(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double there_and_back(int ranks) { return 2 * all_but_own(ranks); }

// A rank's own part of the whole side.
at::Tensor own_part(const Communicator& comm, const at::Tensor& whole) {
  const int64_t part = whole.numel() / comm.size();
  return whole.narrow(0, comm.rank() * part, part);
}

void check_reduction(at::ScalarType dtype, ReduceOp op) {
  if (op == ReduceOp::average && !at::isFloatingType(dtype)) {
    throw UsageError("average of int32 is not exact; use sum, min or max");
  }
}

// Both sides hold all elements.
CollectiveCase whole_sides(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                           bool in_place) {
  check_reduction(dtype, op);
  const at::Tensor out = comm.allocate(numel, dtype);
  return {in_place ? out : comm.allocate(numel, dtype), out, op};
}

CollectiveCase separate_sides(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                              bool in_place) {
  if (in_place) throw UsageError("all_to_all and send_recv do not work in place");
  return {comm.allocate(numel, dtype), comm.allocate(numel, dtype), op};
}

CollectiveCase cut_exchange(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                            bool in_place) {
  return separate_sides(comm, numel / comm.size() * comm.size(), dtype, op, in_place);
}

// `out` is the whole, `in` a part of it.
CollectiveCase gathering(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                         bool in_place) {
  const int64_t part = numel / comm.size();
  const at::Tensor out = comm.allocate(part * comm.size(), dtype);
  return {in_place ? own_part(comm, out) : comm.allocate(part, dtype), out, op};
}

// `in` is the whole, `out` a part of it.
CollectiveCase scattering(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                          bool in_place) {
  check_reduction(dtype, op);
  const auto [part, whole, same_op] = gathering(comm, numel, dtype, op, in_place);
  return {whole, part, same_op};
}

CollectiveCase gathering_to_root(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                                 bool in_place) {
  if (comm.rank() == kRoot) return gathering(comm, numel, dtype, op, in_place);
  return {comm.allocate(numel / comm.size(), dtype), {}, op};
}

CollectiveCase scattering_from_root(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                                    bool in_place) {
  if (comm.rank() == kRoot) return scattering(comm, numel, dtype, op, in_place);
  return {{}, comm.allocate(numel / comm.size(), dtype), op};
}

int next(const Communicator& comm) { return (comm.rank() + 1) % comm.size(); }
int previous(const Communicator& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

// Parts of all ranks, one after the other.
at::Tensor all_parts(const Communicator& comm, int64_t part, at::ScalarType dtype, int64_t round) {
  std::vector<at::Tensor> parts;
  parts.reserve(static_cast<size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) parts.push_back(pattern(rank, part, dtype, round));
  return at::cat(parts);
}

at::Tensor expect_reduced(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return reduced_pattern(comm.size(), b.in.numel(), b.in.scalar_type(), round, b.op);
}

at::Tensor expect_reduced_on_root(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return comm.rank() == kRoot ? expect_reduced(comm, b, round) : at::Tensor();
}

at::Tensor expect_reduced_part(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return own_part(comm, expect_reduced(comm, b, round));
}

at::Tensor expect_all_parts(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return all_parts(comm, b.in.numel(), b.in.scalar_type(), round);
}

at::Tensor expect_all_parts_on_root(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return comm.rank() == kRoot ? expect_all_parts(comm, b, round) : at::Tensor();
}

at::Tensor expect_from_root(const Communicator&, const CollectiveCase& b, int64_t round) {
  return pattern(kRoot, b.out.numel(), b.out.scalar_type(), round);
}

at::Tensor expect_part_from_root(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return own_part(comm, pattern(kRoot, b.out.numel() * comm.size(), b.out.scalar_type(), round));
}

at::Tensor expect_part_of_each(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  std::vector<at::Tensor> parts;
  parts.reserve(static_cast<size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    parts.push_back(own_part(comm, pattern(rank, b.in.numel(), b.in.scalar_type(), round)));
  }
  return at::cat(parts);
}

at::Tensor expect_from_previous(const Communicator& comm, const CollectiveCase& b, int64_t round) {
  return pattern(previous(comm), b.out.numel(), b.out.scalar_type(), round);
}

}  // namespace

const std::vector<CollectiveRow>& collective_rows() {
  static const std::vector<CollectiveRow> rows = {
      {"all_reduce", there_and_back, whole_sides,
       [](Communicator& comm, const CollectiveCase& b) { return comm.all_reduce(b.out, b.in, b.op); },
       expect_reduced},
      {"reduce_scatter", all_but_own, scattering,
       [](Communicator& comm, const CollectiveCase& b) { return comm.reduce_scatter(b.out, b.in, b.op); },
       expect_reduced_part},
      {"all_gather", all_but_own, gathering,
       [](Communicator& comm, const CollectiveCase& b) { return comm.all_gather(b.out, b.in); },
       expect_all_parts},
      {"broadcast", one, whole_sides,
       [](Communicator& comm, const CollectiveCase& b) { return comm.broadcast(b.out, b.in, kRoot); },
       expect_from_root},
      {"reduce", one, whole_sides,
       [](Communicator& comm, const CollectiveCase& b) { return comm.reduce(b.out, b.in, kRoot, b.op); },
       expect_reduced_on_root},
      {"all_to_all", all_but_own, cut_exchange,
       [](Communicator& comm, const CollectiveCase& b) { return comm.all_to_all(b.out, b.in); },
       expect_part_of_each},
      {"gather", all_but_own, gathering_to_root,
       [](Communicator& comm, const CollectiveCase& b) { return comm.gather(b.out, b.in, kRoot); },
       expect_all_parts_on_root},
      {"scatter", all_but_own, scattering_from_root,
       [](Communicator& comm, const CollectiveCase& b) { return comm.scatter(b.out, b.in, kRoot); },
       expect_part_from_root},
      {"send_recv", one, separate_sides,
       [](Communicator& comm, const CollectiveCase& b) {
         return comm.send_recv(b.out, previous(comm), b.in, next(comm));
       },
       expect_from_previous},
  };
  return rows;
}

const CollectiveRow& collective_row(const std::string& name) {
  std::string known;
  for (const CollectiveRow& row : collective_rows()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("unknown collective '" + name + "'; known: " + known);
}

void fill(const Communicator& comm, const CollectiveCase& buffers, int64_t round) {
  constexpr int kNoResult = 99;
  if (buffers.out.defined()) buffers.out.fill_(kNoResult);
  if (!buffers.in.defined()) return;
  buffers.in.copy_(pattern(comm.rank(), buffers.in.numel(), buffers.in.scalar_type(), round));
}

int64_t num_wrong(const CollectiveRow& row, const Communicator& comm, const CollectiveCase& buffers,
                  int64_t round) {
  const at::Tensor expected = row.expected(comm, buffers, round);
  if (!expected.defined()) return 0;
  const at::Tensor wanted = expected.to(buffers.out.device());
  const bool exact = buffers.op != ReduceOp::average || (comm.size() & (comm.size() - 1)) == 0;
  if (exact) return buffers.out.ne(wanted).sum().item<int64_t>();
  const std::map<at::ScalarType, double> epsilon = {
      {at::kFloat, 0x1p-23}, {at::kDouble, 0x1p-52}, {at::kHalf, 0x1p-10}, {at::kBFloat16, 0x1p-7}};
  const double tolerance = 4 * epsilon.at(buffers.out.scalar_type());
  // "not within" rather than "beyond": a NaN is wrong.
  const at::Tensor within = (buffers.out.to(at::kDouble) - wanted.to(at::kDouble)).abs().le(tolerance);
  return within.logical_not().sum().item<int64_t>();
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

// Checks that every transport must pass, as functions of a communicator. tests/mpi and tests/gpu run the same
// checks.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "comm/host_group.h"
#include "comm/verification.h"
#include "specs/specs.h"

namespace shardmark::checks {

inline std::string describe(Collective what, const std::string& dtype, const std::string& op, bool in_place,
                            int64_t numel) {
  return specs::collective(what).name + " " + dtype + " " + op +
         (in_place ? " in place " : " out of place ") + std::to_string(numel) + " elements";
}

// Prepares an out-of-place sum of floats.
inline Call plain(Communicator& comm, Collective what, int64_t numel) {
  return prepare(comm, what, numel, at::kFloat, ReduceOp::sum, false);
}

// Calls visit(what, dtype, op, in_place) for every combination that exists.
inline void each_case(const std::function<void(Collective what, const std::string& dtype,
                                               const std::string& op, bool in_place)>& visit) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    for (const std::string& dtype : specs::dtype_names()) {
      for (const std::string& op :
           row.reduces ? specs::reduction_names() : std::vector<std::string>{"none"}) {
        if (op == "average" && dtype == "int32") continue;
        for (const bool in_place : {false, true})
          if (!in_place || row.in_place) visit(row.what, dtype, op, in_place);
      }
    }
  }
}

// Checks all collectives with all element types and reductions, in place and out of place. Every element must
// be exact, whether an operation is started and waited for or run in one call; the two take turns.
inline void exact(Communicator& comm, const std::vector<int64_t>& sizes) {
  int64_t round = 0;
  each_case([&](Collective what, const std::string& dtype, const std::string& op, bool in_place) {
    for (const int64_t numel : sizes) {
      const Call call = prepare(comm, what, numel, element_type(dtype), reduce_op(op), in_place);
      const bool in_one_call = ++round % 2 == 0;
      fill(comm, call, round);
      if (in_one_call)
        comm.run(call);
      else
        comm.start(call).wait();
      EXPECT_EQ(num_wrong(comm, call, round), 0)
          << describe(what, dtype, op, in_place, numel) << (in_one_call ? ", run" : ", started");
    }
  });
}

// Starts operations of all kinds and sizes, and waits for them in a different order.
inline void out_of_order(Communicator& comm) {
  struct InFlight {
    Call call;
    int64_t round;
    Work work;
  };
  std::vector<InFlight> started;
  for (const int64_t numel : {300001, 5, 70000}) {
    for (const specs::CollectiveRow& row : specs::collectives()) {
      Call call = plain(comm, row.what, numel);
      fill(comm, call, numel);
      Work work = comm.start(call);
      started.push_back({std::move(call), numel, std::move(work)});
    }
  }
  for (size_t i = 0; i < started.size(); ++i) {
    // The order differs between ranks, because waiting is not a collective operation. 11 and the number of
    // operations have no common divisor.
    InFlight& operation = started[(i * 11 + static_cast<size_t>(comm.rank()) * 7) % started.size()];
    operation.work.wait();
    EXPECT_EQ(num_wrong(comm, operation.call, operation.round), 0)
        << describe(operation.call.what, "float32", "sum", false, operation.round);
  }
}

// Checks all_to_all_v with parts of any length, including empty ones. Results must be exact and traffic
// counted. In one form a single part is long, and most ranks neither send nor receive it.
inline void uneven(Communicator& comm) {
  const int64_t size = comm.size();
  for (const int64_t numel : {int64_t{0}, int64_t{7}, int64_t{70001}, int64_t{3000017}})
    for (int form = 0; form < 4; ++form) {
      std::vector<std::vector<int64_t>> rows(static_cast<size_t>(size));
      for (int64_t i = 0; i < size * size; ++i) {
        const int64_t from = i / size, to = i % size;
        rows[static_cast<size_t>(from)].push_back(form == 0   ? numel / size
                                                  : form == 1 ? (to == 0 ? numel : 0)
                                                  : form == 2 ? (from == 0 && to == size - 1 ? numel : 7)
                                                              : numel * ((from + 2 * to) % 3) / size);
      }
      const auto parts = std::make_shared<specs::Parts>(rows);
      const Call call =
          prepare(comm, Collective::all_to_all_v, numel, at::kFloat, ReduceOp::sum, false, parts);
      fill(comm, call, form);
      comm.reset_traffic();
      if (numel == 7)
        comm.run(call);
      else
        comm.start(call).wait();
      EXPECT_EQ(num_wrong(comm, call, form), 0) << "form " << form << ", " << numel << " elements";
      const int64_t me = comm.rank();
      EXPECT_EQ(comm.traffic().ring_bytes,
                static_cast<double>(4 * (parts->sent_by(me) - parts->between(me, me))));
      EXPECT_EQ(comm.traffic().payload_bytes, static_cast<double>(4 * parts->busiest()));
    }
}

// When a Work goes out of scope, its operation has completed.
inline void dropped_work(Communicator& comm) {
  const Call call = prepare(comm, Collective::all_reduce, 300001, at::kFloat, ReduceOp::sum, true);
  fill(comm, call, 1);
  { const Work dropped = comm.start(call); }
  EXPECT_EQ(num_wrong(comm, call, 1), 0);
}

// Starts several operations in one launch.
inline void grouped(Communicator& comm) {
  std::vector<Call> calls;
  std::vector<Work> works;
  for (const int64_t numel : {1000, 70000, 64}) {
    calls.push_back(prepare(comm, Collective::all_gather, numel, at::kFloat, ReduceOp::sum, true));
    fill(comm, calls.back(), numel);
  }
  comm.group_begin();
  for (const Call& call : calls) works.push_back(comm.start(call));
  comm.group_end();
  for (Work& work : works) work.wait();
  EXPECT_EQ(num_wrong(comm, calls[0], 1000), 0);
  EXPECT_EQ(num_wrong(comm, calls[1], 70000), 0);
  EXPECT_EQ(num_wrong(comm, calls[2], 64), 0);
}

// Even ranks form a communicator in reverse order. Odd ranks take no part.
inline void split_in_halves(Communicator& comm) {
  const bool takes_part = comm.rank() % 2 == 0;
  const std::unique_ptr<Communicator> half = comm.split(takes_part ? 0 : -1, -comm.rank());
  ASSERT_EQ(half != nullptr, takes_part);
  if (!takes_part) return;
  EXPECT_EQ(half->size(), (comm.size() + 1) / 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - comm.rank() / 2);
  exact(*half, {1000});
}

// Checks the traffic counters: one operation, its payload, and the payload times the ring factor.
inline void traffic(Communicator& comm) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    const int64_t numel = 1000 * comm.size();
    const Call call = plain(comm, row.what, numel);
    comm.reset_traffic();
    comm.start(call).wait();
    EXPECT_EQ(comm.traffic().num_operations, 1);
    EXPECT_EQ(comm.traffic().operations.at(static_cast<size_t>(row.what)), 1) << row.name;
    EXPECT_EQ(comm.traffic().payload_bytes, 4.0 * static_cast<double>(numel)) << row.name;
    EXPECT_DOUBLE_EQ(comm.traffic().ring_bytes,
                     4.0 * static_cast<double>(numel) * specs::ring_factor(row.what, comm.size()));
  }
}

// Verification detects a single wrong element at any position.
inline void detects_corruption(Communicator& comm) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    const Call call = plain(comm, row.what, 1003);
    for (const double where : {0.0, 0.5, 1.0}) {
      fill(comm, call, 5);
      comm.start(call).wait();
      if (!call.uses_out(comm.rank())) continue;
      const auto last = static_cast<double>(call.out.numel() - 1);
      call.out.narrow(0, static_cast<int64_t>(where * last), 1).add_(1);
      EXPECT_EQ(num_wrong(comm, call, 5), 1) << row.name;
    }
  }
}

// Verification detects an operation that did nothing, and the result of another round.
inline void detects_missing_operation(Communicator& comm) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    const Call call = plain(comm, row.what, 1003);
    fill(comm, call, 5);
    if (!call.uses_out(comm.rank())) continue;
    EXPECT_EQ(num_wrong(comm, call, 5), call.out.numel()) << row.name;
    call.out.copy_(expected(comm, call, 6));
    EXPECT_GT(num_wrong(comm, call, 5), 0) << row.name;
  }
}

}  // namespace shardmark::checks

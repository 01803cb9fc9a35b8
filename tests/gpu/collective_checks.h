// The checks that every transport must pass, as functions of a communicator: tests/mpi and tests/gpu run the
// same ones.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "comm/collectives.h"
#include "comm/host_group.h"
#include "laws/vocabulary.h"

namespace shardmark::checks {

inline std::string describe(const CollectiveRow& row, const std::string& dtype, const std::string& op,
                            bool in_place, int64_t numel) {
  return std::string(row.name) + " " + dtype + " " + op + (in_place ? " in place " : " out of place ") +
         std::to_string(numel) + " elements";
}

// Calls visit(row, law, dtype, op, in_place) for every combination that exists.
inline void each_case(
    const std::function<void(const CollectiveRow&, const laws::CollectiveLaw&, const std::string& dtype,
                             const std::string& op, bool in_place)>& visit) {
  for (const laws::CollectiveLaw& law : laws::collective_laws()) {
    for (const std::string& dtype : laws::dtype_names()) {
      for (const std::string& op : law.reduces ? laws::reduction_names() : std::vector<std::string>{"none"}) {
        if (op == "average" && dtype == "int32") continue;
        for (const bool in_place : {false, true}) {
          if (in_place && !law.in_place) continue;
          visit(collective_row(law.name), law, dtype, op, in_place);
        }
      }
    }
  }
}

// Every row x element type x reduction x in and out of place, exact in every element.
inline void exact(Communicator& comm, const std::vector<int64_t>& sizes) {
  int64_t round = 0;
  each_case([&](const CollectiveRow& row, const laws::CollectiveLaw&, const std::string& dtype,
                const std::string& op, bool in_place) {
    for (const int64_t numel : sizes) {
      const CollectiveCase buffers = row.prepare(comm, numel, element_type(dtype), reduce_op(op), in_place);
      fill(comm, buffers, ++round);
      row.run(comm, buffers).wait();
      EXPECT_EQ(num_wrong(row, comm, buffers, round), 0) << describe(row, dtype, op, in_place, numel);
    }
  });
}

// Operations of all kinds and sizes in flight together, waited for in another order than they were started.
inline void out_of_order(Communicator& comm) {
  struct InFlight {
    const CollectiveRow* row;
    CollectiveCase buffers;
    int64_t round;
    Work work;
  };
  std::vector<InFlight> started;
  for (const int64_t numel : {300001, 5, 70000}) {
    for (const CollectiveRow& row : collective_rows()) {
      CollectiveCase buffers = row.prepare(comm, numel, at::kFloat, ReduceOp::sum, false);
      fill(comm, buffers, numel);
      Work work = row.run(comm, buffers);
      started.push_back({&row, std::move(buffers), numel, std::move(work)});
    }
  }
  for (size_t i = 0; i < started.size(); ++i) {
    // Another order on each rank: waiting is not collective. 10 and the number of operations have no common
    // divisor.
    InFlight& operation = started[(i * 10 + static_cast<size_t>(comm.rank()) * 7) % started.size()];
    operation.work.wait();
    EXPECT_EQ(num_wrong(*operation.row, comm, operation.buffers, operation.round), 0)
        << describe(*operation.row, "float32", "sum", false, operation.round);
  }
}

// A Work that goes out of scope has been waited for.
inline void dropped_work(Communicator& comm) {
  const CollectiveRow& row = collective_row("all_reduce");
  const CollectiveCase buffers = row.prepare(comm, 300001, at::kFloat, ReduceOp::sum, true);
  fill(comm, buffers, 1);
  { const Work dropped = row.run(comm, buffers); }
  EXPECT_EQ(num_wrong(row, comm, buffers, 1), 0);
}

// Several operations in one launch.
inline void grouped(Communicator& comm) {
  const CollectiveRow& row = collective_row("all_gather");
  std::vector<CollectiveCase> cases;
  std::vector<Work> works;
  for (const int64_t numel : {1000, 70000, 64}) {
    cases.push_back(row.prepare(comm, numel, at::kFloat, ReduceOp::sum, true));
    fill(comm, cases.back(), numel);
  }
  comm.group_begin();
  for (const CollectiveCase& buffers : cases) works.push_back(row.run(comm, buffers));
  comm.group_end();
  for (Work& work : works) work.wait();
  EXPECT_EQ(num_wrong(row, comm, cases[0], 1000), 0);
  EXPECT_EQ(num_wrong(row, comm, cases[1], 70000), 0);
  EXPECT_EQ(num_wrong(row, comm, cases[2], 64), 0);
}

// Even ranks form a communicator with the order turned round; odd ranks take no part.
inline void split_in_halves(Communicator& comm) {
  const bool takes_part = comm.rank() % 2 == 0;
  const std::unique_ptr<Communicator> half = comm.split(takes_part ? 0 : -1, -comm.rank());
  ASSERT_EQ(half != nullptr, takes_part);
  if (!takes_part) return;
  EXPECT_EQ(half->size(), (comm.size() + 1) / 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - comm.rank() / 2);
  exact(*half, {1000});
}

// Counted traffic: one operation, its payload, and payload x ring factor.
inline void traffic(Communicator& comm) {
  for (const CollectiveRow& row : collective_rows()) {
    const int64_t numel = 1000 * comm.size();
    const CollectiveCase buffers = row.prepare(comm, numel, at::kFloat, ReduceOp::sum, false);
    comm.reset_traffic();
    row.run(comm, buffers).wait();
    EXPECT_EQ(comm.traffic().num_operations, 1);
    EXPECT_EQ(comm.traffic().operations.at(row.name), 1);
    EXPECT_EQ(comm.traffic().payload_bytes, 4.0 * static_cast<double>(numel)) << row.name;
    EXPECT_DOUBLE_EQ(comm.traffic().law_bytes,
                     4.0 * static_cast<double>(numel) * laws::ring_factor(row.name, comm.size()));
  }
}

// Verification sees one wrong element, wherever it is.
inline void detects_corruption(Communicator& comm) {
  for (const CollectiveRow& row : collective_rows()) {
    const CollectiveCase buffers = row.prepare(comm, 1003, at::kFloat, ReduceOp::sum, false);
    for (const double where : {0.0, 0.5, 1.0}) {
      fill(comm, buffers, 5);
      row.run(comm, buffers).wait();
      if (!row.expected(comm, buffers, 5).defined()) continue;
      const auto last = static_cast<double>(buffers.out.numel() - 1);
      buffers.out.narrow(0, static_cast<int64_t>(where * last), 1).add_(1);
      EXPECT_EQ(num_wrong(row, comm, buffers, 5), 1) << row.name;
    }
  }
}

// Verification sees an operation that did nothing, and one that belongs to another round.
inline void detects_missing_operation(Communicator& comm) {
  for (const CollectiveRow& row : collective_rows()) {
    const CollectiveCase buffers = row.prepare(comm, 1003, at::kFloat, ReduceOp::sum, false);
    fill(comm, buffers, 5);
    if (!row.expected(comm, buffers, 5).defined()) continue;
    EXPECT_EQ(num_wrong(row, comm, buffers, 5), buffers.out.numel()) << row.name;
    buffers.out.copy_(row.expected(comm, buffers, 6));
    EXPECT_GT(num_wrong(row, comm, buffers, 5), 0) << row.name;
  }
}

}  // namespace shardmark::checks

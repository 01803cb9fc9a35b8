// RANKS 1 2 3 4
// Tests all collectives over MPI, ours (pt2pt) and the library's (mpi): every element is exact, whatever else
// is in flight, and traffic is counted.
#include <sched.h>

#include "../gpu/collective_checks.h"
#include "base/error.h"
#include "comm/pt2pt/pieces.h"
#include "device/meter.h"

namespace shardmark {
namespace {

struct Kind {
  const char* name;
  const char* transport;
  MovedBy moved_by;
};

// Three or more ranks send at most three of MPI's first messages in one round; two send whole tensors, too,
// where pieces would not go with the first message.
TEST(AllReduce, IsOneRoundWhereThatIsFaster) {
  for (const auto& [ranks, bytes] :
       {std::pair(2, 4000), {4, 4000}, {5, 3000}, {8, 1714}, {2, 8001}, {2, 40960}, {1, 1}})
    EXPECT_TRUE(all_reduces_in_one_round(bytes, ranks)) << ranks << " ranks, " << bytes << " B";
  for (const auto& [ranks, bytes] : {std::pair(2, 4001),
                                     {2, 8000},
                                     {2, 40961},
                                     {4, 4001},
                                     {4, 16384},
                                     {5, 3001},
                                     {8, 1715},
                                     {9, 8},
                                     {1000, 8}})
    EXPECT_FALSE(all_reduces_in_one_round(bytes, ranks)) << ranks << " ranks, " << bytes << " B";
}

class Comm : public ::testing::TestWithParam<Kind> {
 protected:
  bool is_ours() const { return comm_->transport() == "pt2pt"; }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ =
      make_communicator(GetParam().transport, world_, at::kCPU, GetParam().moved_by);
};

// With elements of 1 to 8 bytes, these numbers of them travel in one round, in two, and in several chunks.
TEST_P(Comm, EveryCaseIsExact) { checks::exact(*comm_, {0, 1, 7, 1000, 5000, 600011}); }

TEST_P(Comm, LargeMessagesOfManyChunks) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    const Call call = checks::plain(*comm_, row.what, 6000017);  // more chunks than slots
    fill(*comm_, call, 3);
    comm_->start(call).wait();
    EXPECT_EQ(num_wrong(*comm_, call, 3), 0) << row.name;
  }
}

TEST_P(Comm, PartsOfAnyLength) { checks::uneven(*comm_); }
TEST_P(Comm, WaitsInAnyOrder) { checks::out_of_order(*comm_); }
TEST_P(Comm, WorkThatGoesOutOfScopeIsDone) { checks::dropped_work(*comm_); }
TEST_P(Comm, Groups) { checks::grouped(*comm_); }
TEST_P(Comm, Split) { checks::split_in_halves(*comm_); }
TEST_P(Comm, CountsTraffic) { checks::traffic(*comm_); }
TEST_P(Comm, VerificationDetectsAWrongElement) { checks::detects_corruption(*comm_); }
TEST_P(Comm, VerificationDetectsAMissingOperation) { checks::detects_missing_operation(*comm_); }

TEST_P(Comm, PollingAloneCompletes) {
  const at::Tensor tensor = comm_->allocate(3000017, at::kFloat);
  tensor.fill_(1);
  Work work = comm_->all_reduce(tensor, ReduceOp::sum);
  while (!work.poll()) comm_->progress();
  EXPECT_TRUE(tensor.eq(comm_->size()).all().item<bool>());
}

// If a thread moves the data, operations progress while this rank computes.
TEST_P(Comm, AThreadMovesByItself) {
  if (GetParam().moved_by == MovedBy::caller) GTEST_SKIP() << "nothing moves by itself without a thread";
  const at::Tensor tensor = comm_->allocate(3000017, at::kFloat);
  tensor.fill_(1);
  volatile const float* last = tensor.data_ptr<float>() + tensor.numel() - 1;
  Work work = comm_->all_reduce(tensor, ReduceOp::sum);
  while (*last != static_cast<float>(comm_->size())) sched_yield();
  work.wait();
  EXPECT_TRUE(tensor.eq(comm_->size()).all().item<bool>());
}

TEST_P(Comm, OtherRanksKeepTheirTensorInAReduction) {
  const at::Tensor tensor = comm_->allocate(300001, at::kFloat);
  const int root = comm_->size() - 1;
  tensor.fill_(comm_->rank() + 1);
  comm_->reduce(tensor, root, ReduceOp::max).wait();
  EXPECT_TRUE(tensor.eq(comm_->rank() == root ? comm_->size() : comm_->rank() + 1).all().item<bool>());
}

TEST_P(Comm, EveryRankMayBeTheRoot) {
  for (int root = 0; root < comm_->size(); ++root) {
    for (const int64_t numel : {3, 300001}) {
      const at::Tensor part = comm_->allocate(numel, at::kFloat);
      const at::Tensor whole =
          comm_->rank() == root ? comm_->allocate(numel * comm_->size(), at::kFloat) : at::Tensor();
      part.fill_(comm_->rank());
      comm_->gather(whole, part, root).wait();
      if (whole.defined()) whole.add_(10);
      comm_->scatter(part, whole, root).wait();
      EXPECT_TRUE(part.eq(comm_->rank() + 10).all().item<bool>());
      comm_->broadcast(part, root).wait();
      EXPECT_TRUE(part.eq(root + 10).all().item<bool>());
    }
  }
}

// A sum is the same wherever the tensor is divided, and on every rank. Tests that compare strategies bit by
// bit rely on this.
TEST_P(Comm, SumsDoNotDependOnTheCut) {
  if (!is_ours()) GTEST_SKIP() << "MPI libraries choose an order of additions for each size";
  at::manual_seed(7 + comm_->rank());
  const at::Tensor values = at::randn({301 * 1024});
  const at::Tensor whole = values.clone();
  comm_->all_reduce(whole, ReduceOp::average).wait();
  for (int64_t begin = 0; begin < values.numel(); begin += 7 * 1024) {
    const at::Tensor part = values.narrow(0, begin, 7 * 1024);
    comm_->all_reduce(part, ReduceOp::average).wait();
    ASSERT_TRUE(part.equal(whole.narrow(0, begin, 7 * 1024)));
  }
  const at::Tensor of_root = whole.clone();
  comm_->broadcast(of_root, 0).wait();
  EXPECT_TRUE(of_root.equal(whole));
}

TEST_P(Comm, AllocatedMemoryIsZeroedAndCounted) {
  const int64_t before = meter::read().of(MemoryUse::gradients);
  {
    const meter::Scope scope(MemoryUse::gradients);
    const at::Tensor tensor = comm_->allocate(1 << 20, at::kFloat);
    EXPECT_EQ(meter::read().of(MemoryUse::gradients) - before, 4 << 20);
    EXPECT_EQ(tensor.count_nonzero().item<int64_t>(), 0);
  }
  EXPECT_EQ(meter::read().of(MemoryUse::gradients), before);
}

TEST_P(Comm, RefusesWhatItCannotDo) {
  EXPECT_THROW(make_communicator("carrier_pigeon", world_, at::kCPU), UsageError);
  EXPECT_THROW(make_communicator("nccl", world_, at::kCPU), UsageError);
  EXPECT_THROW(prepare(*comm_, Collective::all_reduce, 8, at::kInt, ReduceOp::average, true), UsageError);
  EXPECT_THROW(prepare(*comm_, Collective::all_to_all, 8, at::kInt, ReduceOp::sum, true), UsageError);
  EXPECT_THROW(specs::collective("all_hands"), UsageError);
  const at::Tensor strided = at::zeros({8, 8}).t();
  EXPECT_THROW(comm_->all_reduce(strided, ReduceOp::sum), ContractError);
  const at::Tensor whole = at::zeros({4 * comm_->size()});
  EXPECT_THROW(comm_->all_reduce(at::zeros({3}), whole, ReduceOp::sum), ContractError);
  EXPECT_THROW(comm_->all_gather(whole, at::zeros({3})), ContractError);
  EXPECT_THROW(comm_->all_to_all(whole, whole), ContractError);
  EXPECT_THROW(comm_->all_reduce(whole.to(at::kInt), ReduceOp::average), ContractError);
}

INSTANTIATE_TEST_SUITE_P(Transports, Comm,
                         ::testing::Values(Kind{"Caller", "pt2pt", MovedBy::caller},
                                           Kind{"Thread", "pt2pt", MovedBy::thread},
                                           Kind{"Library", "mpi", MovedBy::caller}),
                         [](const auto& kind) { return kind.param.name; });

// All partial sums over any number of ranks are exact in bfloat16, which represents integers up to 256.
TEST(Pattern, SumsOfAHundredThousandRanksAreExact) {
  for (const int num_ranks : {2, 31, 33, 1000, 1 << 17}) {
    EXPECT_LE(reduced_pattern(num_ranks, 499, at::kDouble, 1, ReduceOp::sum).abs().max().item<double>(), 256);
    EXPECT_GT(pattern(num_ranks - 1, 1 << 20, at::kDouble, 1).abs().max().item<double>(), 0);
  }
}

}  // namespace
}  // namespace shardmark

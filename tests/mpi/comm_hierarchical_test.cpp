// RANKS 1 2 3 4
// Tests hierarchical all-reduce: as exact as any transport, whatever else is in flight, and with traffic
// between nodes counted.
#include "../gpu/collective_checks.h"
#include "base/error.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

struct Form {
  const char* name;
  const char* transport;
  int ranks_per_node;  // as in the option; 0: all these ranks are on one node
  bool sharded;
  MovedBy moved_by = MovedBy::caller;
};

const Form kForms[] = {
    {"LeaderTwoPerNode", "hierarchical(form=leader, ranks_per_node=2)", 2, false},
    {"LeaderThreePerNode", "hierarchical(form=leader, ranks_per_node=3)", 3, false},
    {"LeaderOfThisMachine", "hierarchical(form=leader)", 0, false},
    {"ShardedTwoPerNode", "hierarchical(form=sharded, ranks_per_node=2)", 2, true},
    {"ShardedOnePerNode", "hierarchical(form=sharded, ranks_per_node=1)", 1, true},
    {"ShardedOnThisMachine", "hierarchical", 0, true},
    {"ShardedByThreads", "hierarchical(form=sharded, ranks_per_node=2)", 2, true, MovedBy::thread},
};

class Hierarchical : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    if (!takes_these_ranks()) GTEST_SKIP() << "the last node is not full: see RefusesUnevenNodes";
    comm_ = make_communicator(GetParam().transport, world_, at::kCPU, GetParam().moved_by);
  }
  int ranks_per_node() const {
    return GetParam().ranks_per_node > 0 ? std::min(GetParam().ranks_per_node, world_.size()) : world_.size();
  }
  bool takes_these_ranks() const { return !GetParam().sharded || world_.size() % ranks_per_node() == 0; }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_;
};

TEST_P(Hierarchical, EveryCaseIsExact) { checks::exact(*comm_, {0, 1, 7, 1000, 30001}); }
TEST_P(Hierarchical, WaitsInAnyOrder) { checks::out_of_order(*comm_); }
TEST_P(Hierarchical, WorkThatGoesOutOfScopeIsDone) { checks::dropped_work(*comm_); }
TEST_P(Hierarchical, Groups) { checks::grouped(*comm_); }
TEST_P(Hierarchical, Split) { checks::split_in_halves(*comm_); }
TEST_P(Hierarchical, CountsTraffic) { checks::traffic(*comm_); }

TEST_P(Hierarchical, LargeMessagesInFlightTogether) {
  std::vector<at::Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 5; ++i) {
    tensors.push_back(comm_->allocate(3000017, at::kFloat));
    tensors.back().fill_(comm_->rank() + i);
    works.push_back(comm_->all_reduce(tensors.back(), ReduceOp::sum));
  }
  while (!works.back().poll()) comm_->progress();
  for (int i = 0; i < 5; ++i) {
    works[static_cast<size_t>(i)].wait();
    const int expected = comm_->size() * (comm_->size() - 1) / 2 + i * comm_->size();
    EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(expected).all().item<bool>()) << i;
  }
}

// The message has M bytes, and there are L ranks on each of K nodes. In the sharded form, each rank sends
// 2(K-1)/K M / L bytes between nodes, which is less than 2 M / L. In the leader form, the leader sends for
// all ranks of its node.
TEST_P(Hierarchical, CountsWhatGoesBetweenNodes) {
  const double bytes = 4.0 * 12 * 1000;
  const int per_node = ranks_per_node(), nodes = (comm_->size() + per_node - 1) / per_node;
  const double before = comm_->bytes_between_nodes();
  comm_->all_reduce(comm_->allocate(12 * 1000, at::kFloat), ReduceOp::sum).wait();
  const double sent = comm_->bytes_between_nodes() - before;
  const bool sends = GetParam().sharded || comm_->rank() % per_node == 0;
  const double factor = 2.0 * (nodes - 1) / nodes;
  EXPECT_DOUBLE_EQ(sent, sends ? factor * bytes / (GetParam().sharded ? per_node : 1) : 0);
  EXPECT_LE(sent, 2 * bytes / (GetParam().sharded ? per_node : 1));
}

TEST_P(Hierarchical, TrainsAsTheFlatTransport) {
  const Case c{"mlp(features=13, width=19, layers=3, classes=5)", "sgd(lr=0.05, momentum=0.9)"};
  const auto flat = make_communicator("pt2pt", world_, at::kCPU);
  const std::string ddp = "ddp(bucket_mb=0.002, first_bucket_mb=0.001)";
  const Outcomes expected = train(c, ddp, *flat), run = train(c, ddp, *comm_);
  EXPECT_LE(parameter_error(run, expected), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Forms, Hierarchical, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });

TEST(HierarchicalLayout, RefusesUnevenNodes) {
  const HostGroup world = HostGroup::world();
  if (world.size() != 3) GTEST_SKIP() << "for three ranks, two per node";
  try {
    make_communicator("hierarchical(form=sharded, ranks_per_node=2)", world, at::kCPU);
    FAIL() << "three ranks on nodes of two";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("equally many ranks on every node, here are 1 to 2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace shardmark

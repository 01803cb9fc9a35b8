// RANKS 10
// Tests more ranks than exchange short messages directly. Short messages use trees, long ones are exchanged
// directly.
#include "../gpu/collective_checks.h"

namespace shardmark {
namespace {

TEST(ManyRanks, EveryCaseIsExact) {
  const HostGroup world = HostGroup::world();
  for (const char* transport : {"pt2pt", "mpi"})
    checks::exact(*make_communicator(transport, world, at::kCPU), {1, 700, 40001});
}

TEST(ManyRanks, TreesHaveAnyRoot) {
  const HostGroup world = HostGroup::world();
  const std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
  for (int root = 0; root < comm->size(); ++root) {
    const at::Tensor tensor = comm->allocate(5, at::kFloat);
    tensor.fill_(comm->rank() + 1);
    comm->reduce(tensor, root, ReduceOp::sum).wait();
    const int sum = comm->size() * (comm->size() + 1) / 2;
    EXPECT_TRUE(tensor.eq(comm->rank() == root ? sum : comm->rank() + 1).all().item<bool>());
    comm->broadcast(tensor, root).wait();
    EXPECT_TRUE(tensor.eq(sum).all().item<bool>());
  }
}

}  // namespace
}  // namespace shardmark

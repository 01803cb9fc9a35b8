// The nccl transport passes the checks of the mpi transport, and orders its work by streams.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "base/error.h"
#include "tests/gpu/collective_checks.h"
#include "tests/gpu/gpu_fixture.h"

namespace shardmark {
namespace {

class Nccl : public GpuTest {};

TEST_F(Nccl, EveryCaseIsExact) { checks::exact(*comm_, {1, 7, 1000, 300001}); }
TEST_F(Nccl, WaitsInAnyOrder) { checks::out_of_order(*comm_); }
TEST_F(Nccl, WorkThatGoesOutOfScopeIsDone) { checks::dropped_work(*comm_); }
TEST_F(Nccl, Groups) { checks::grouped(*comm_); }
TEST_F(Nccl, Split) { checks::split_in_halves(*comm_); }
TEST_F(Nccl, CountsTraffic) { checks::traffic(*comm_); }
TEST_F(Nccl, VerificationDetectsAWrongElement) { checks::detects_corruption(*comm_); }
TEST_F(Nccl, VerificationDetectsAMissingOperation) { checks::detects_missing_operation(*comm_); }

// Without any wait of the host: what is enqueued before an operation is in it, what is enqueued after its
// wait sees it, on whatever stream is current.
TEST_F(Nccl, OrdersTheCurrentStream) {
  const c10::cuda::CUDAStreamGuard guard(at::cuda::getStreamFromPool(false, device_.index()));
  const at::Tensor tensor = comm_->allocate(1 << 22, at::kFloat);
  const at::Tensor slow = at::ones({2048, 2048}, at::TensorOptions().device(device_));
  std::vector<at::Tensor> seen;
  for (int round = 1; round <= 20; ++round) {
    tensor.copy_(slow.mm(slow).mean() / 2048 * round);  // a long way behind the host
    comm_->all_reduce(tensor, ReduceOp::sum).wait();
    seen.push_back(tensor.clone());
    tensor.fill_(-1);
  }
  for (int round = 1; round <= 20; ++round) {
    EXPECT_TRUE(seen[static_cast<size_t>(round - 1)].eq(round * comm_->size()).all().item<bool>()) << round;
  }
}

TEST_F(Nccl, AnAbortedCommunicatorSaysSo) {
  const auto aborted = comm_->split(0, comm_->rank());
  aborted->abort();
  const at::Tensor tensor = at::ones({8}, at::TensorOptions().device(device_));
  EXPECT_THROW(aborted->all_reduce(tensor, ReduceOp::sum), SystemError);
}

}  // namespace
}  // namespace shardmark

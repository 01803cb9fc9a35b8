// The nccl transport passes the same checks as the pt2pt transport, and orders its work by streams.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "comm/watch/heartbeat.h"
#include "comm/wrappers/checked.h"
#include "strategies/choice_kinds.h"
#include "tests/gpu/collective_checks.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/gpu/point_on_gpu.h"

namespace shardmark {
namespace {

class Nccl : public GpuTest {};

TEST_F(Nccl, EveryCaseIsExact) { checks::exact(*comm_, {1, 7, 1000, 300001}); }
TEST_F(Nccl, PartsOfAnyLength) { checks::uneven(*comm_); }
TEST_F(Nccl, WaitsInAnyOrder) { checks::out_of_order(*comm_); }
TEST_F(Nccl, WorkThatGoesOutOfScopeIsDone) { checks::dropped_work(*comm_); }
TEST_F(Nccl, Groups) { checks::grouped(*comm_); }
TEST_F(Nccl, Split) { checks::split_in_halves(*comm_); }
TEST_F(Nccl, CountsTraffic) { checks::traffic(*comm_); }
TEST_F(Nccl, VerificationDetectsAWrongElement) { checks::detects_corruption(*comm_); }
TEST_F(Nccl, VerificationDetectsAMissingOperation) { checks::detects_missing_operation(*comm_); }

// The host never waits. An operation includes everything that was enqueued before it, and what is enqueued
// after its wait sees its result, whichever stream is current.
TEST_F(Nccl, OrdersTheCurrentStream) {
  const c10::cuda::CUDAStreamGuard guard(at::cuda::getStreamFromPool(false, device_.index()));
  const at::Tensor tensor = comm_->allocate(1 << 22, at::kFloat);
  const at::Tensor slow = at::ones({2048, 2048}, at::TensorOptions().device(device_));
  std::vector<at::Tensor> seen;
  for (int round = 1; round <= 20; ++round) {
    tensor.copy_(slow.mm(slow).mean() / 2048 * round);  // keeps the GPU far behind the host
    comm_->all_reduce(tensor, ReduceOp::sum).wait();
    seen.push_back(tensor.clone());
    tensor.fill_(-1);
  }
  for (int round = 1; round <= 20; ++round) {
    EXPECT_TRUE(seen[static_cast<size_t>(round - 1)].eq(round * comm_->size()).all().item<bool>()) << round;
  }
}

// A communicator for messages uses few CTAs and gives the same results as others.
TEST_F(Nccl, CarriesMessages) {
  const auto comm = comm_->split(0, comm_->rank(), SplitUse::messages);
  const int next = (comm->rank() + 1) % comm->size(),
            before = (comm->rank() + comm->size() - 1) % comm->size();
  const auto options = at::TensorOptions().device(device_);
  const at::Tensor in = at::full({1 << 22}, comm->rank() + 1, options), out = at::zeros({1 << 22}, options);
  comm->send_recv(out, before, in, next).wait();
  EXPECT_TRUE(out.eq(before + 1).all().item<bool>());
}

// Tokens go to the ranks of their experts and come back, in every form and type, as they do on CPUs.
TEST_F(Nccl, DispatchAndCombineAreExact) {
  for (const std::string operation : {"dispatch", "combine"})
    for (const std::string once_per : {"copy", "rank", "node"})
      for (const std::string dtype : {"float32", "float64", "bfloat16", "float16"}) {
        Point point;
        point.workload = "collective";
        point.ranks = comm_->size();
        const Choice parts =
            choice_from_text("experts(width=64, experts=32, top_k=4, once_per=" + once_per + ")");
        point.collective = {operation, dtype,
                            "none",    100 * 64 * specs::dtype_bytes(dtype),
                            false,     to_text(resolve(parts, parts_kind().options("experts"), "parts"))};
        DecisionInputs inputs;
        const auto workload = make_collective(inputs.of(point, world_, *comm_));
        workload->allocate();
        const Check check = workload->verify();
        EXPECT_FALSE(check.wrong) << operation << " " << once_per << " " << dtype << ": " << check.text;
        workload->begin_window();
        for (int i = 0; i < 3; ++i) workload->step();
        EXPECT_EQ(workload->end_window().front().size(), 3u);
      }
}

// The watchdog counts an operation as complete when the device has completed it, not when the host has
// enqueued it.
TEST_F(Nccl, OperationsAreCompleteWhenTheDeviceIs) {
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  heartbeat.begin_point("a test");
  const auto comm = comm_->split(0, comm_->rank());
  comm->set_heartbeat(&heartbeat);
  const at::Tensor tensor = comm->allocate(1 << 10, at::kFloat);
  const at::Tensor slow = at::ones({8192, 8192}, at::TensorOptions().device(device_));
  for (const bool grouped : {false, true}) {
    synchronize(device_);
    const int64_t before = page.completed.number;
    EXPECT_EQ(before, page.started.number);
    for (int i = 0; i < 20; ++i) slow.mm(slow);  // keeps the GPU far behind the host
    if (grouped) comm->group_begin();
    auto work = comm->all_reduce(tensor, ReduceOp::sum);
    if (grouped) comm->group_end();
    work.wait();
    comm->progress();
    EXPECT_EQ(page.completed.number, before);
    EXPECT_EQ(page.started.number, before + 1);
  }
  synchronize(device_);
  EXPECT_EQ(page.completed.number, page.started.number);
  {
    const auto order = comm->in_order();  // an operation without its own event
    for (int i = 0; i < 20; ++i) slow.mm(slow);
    comm->all_reduce(tensor, ReduceOp::sum).wait();
    comm->progress();
    EXPECT_LT(page.completed.number, page.started.number);
    synchronize(device_);
    EXPECT_EQ(page.completed.number, page.started.number);
  }
}

TEST_F(Nccl, WrappersAreInOrder) {
  const auto stream = [&](Communicator& comm) {
    const auto order = comm.in_order();
    return at::cuda::getCurrentCUDAStream(device_.index());
  };
  const auto usual = at::cuda::getCurrentCUDAStream(device_.index());
  const auto staged = make_communicator("hierarchical(form=leader)", world_, device_);
  EXPECT_NE(stream(*staged), usual);
  const auto checked = make_checked(comm_->split(0, comm_->rank()), world_.split(0, world_.rank()));
  EXPECT_NE(stream(*checked), usual);
}

}  // namespace
}  // namespace shardmark

// Every gradient reduction passes the same checks on a GPU as on the CPU, and gives the same results.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/reduction_checks.h"

namespace shardmark {
namespace {

class ReductionsOnGpu : public GpuTest {};

TEST_F(ReductionsOnGpu, TopKLosesNothing) { checks::reduction_top_k_loses_nothing(*comm_); }
TEST_F(ReductionsOnGpu, TopKSendsTheRestLater) { checks::reduction_top_k_sends_the_rest_later(*comm_); }
TEST_F(ReductionsOnGpu, TopKSendsTheLargest) { checks::reduction_top_k_sends_the_largest(*comm_); }
TEST_F(ReductionsOnGpu, PowerSgdLosesNothing) { checks::reduction_power_sgd_loses_nothing(*comm_); }
TEST_F(ReductionsOnGpu, Int8RoundsToItsScale) { checks::reduction_int8_rounds_to_its_scale(*comm_); }
TEST_F(ReductionsOnGpu, KeepReplicasBitEqual) { checks::reduction_keep_replicas_bit_equal(*comm_); }
TEST_F(ReductionsOnGpu, LossFalls) { checks::reduction_loss_falls(*comm_); }
TEST_F(ReductionsOnGpu, WithoutLossEqualPlain) { checks::reduction_without_loss_equal_plain(*comm_); }
TEST_F(ReductionsOnGpu, CastRoundsTwice) { checks::reduction_cast_rounds_twice(*comm_); }
TEST_F(ReductionsOnGpu, SaveTheBytesThatTheyPromise) {
  checks::reduction_save_the_bytes_that_they_promise(*comm_);
}

// Tests all reductions of the registry with their default options, and those of the checks. Values are
// normally distributed, because several equal integers could be the k-th largest. GPU kernels round low-rank
// factors, casts and scales in a different order.
TEST_F(ReductionsOnGpu, EqualTheCpu) {
  std::vector<std::string> all = checks::kLossy;
  for (const auto& [name, entry] : Registry<strategies::Reduction>::instance().entries()) all.push_back(name);
  for (const auto& reduction : all) {
    const auto reduced = [&](Communicator& comm) {
      checks::Bench bench(comm, reduction, at::kFloat);
      at::manual_seed(static_cast<uint64_t>(comm.rank()));
      bench.flat.copy_(at::randn({bench.flat.numel()}));
      bench.reduce();
      return bench.flat.cpu();
    };
    const at::Tensor on_cpu = reduced(*cpu_comm_), on_gpu = reduced(*comm_);
    const double error = (on_gpu - on_cpu).norm().item<double>() / on_cpu.norm().item<double>();
    EXPECT_LE(error, reduction.starts_with("topk") || reduction == "plain" ? 1e-6 : 1e-2) << reduction;
  }
}

}  // namespace
}  // namespace shardmark

// The fused kernels on a GPU: the checks of mpi/kernel_checks.h at shapes of GPT-2, and a step against
// torch's. RANKS 1
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/kernel_checks.h"

namespace shardmark {
namespace {

class FusedKernelsOnGpu : public GpuTest {};

TEST_F(FusedKernelsOnGpu, LayerNorm) {
  for (const int64_t rows : {1, 37, 5000})
    for (const int64_t channels : {48, 129, 768, 1600, 2000})
      for (const bool adds : {false, true})
        check_layer_norm(fused_kernels(device_), device_, rows, channels, adds);
}

TEST_F(FusedKernelsOnGpu, ProjectionAndItsBias) {
  for (const int64_t rows : {1, 37, 5000})
    for (const int64_t columns : {33, 768, 3072})
      for (const bool gelu : {false, true})
        check_projection(fused_kernels(device_), device_, rows, columns, gelu);
}

TEST_F(FusedKernelsOnGpu, CrossEntropyAndItsGradient) {
  check_cross_entropy(fused_kernels(device_), device_, 7, 31, 31);
  check_cross_entropy(fused_kernels(device_), device_, 7, 131, 192);
  check_cross_entropy(fused_kernels(device_), device_, 30, 50257, 50304);
  check_cross_entropy(fused_kernels(device_), device_, 30, 50257, 50257);
  check_cross_entropy(fused_kernels(device_), device_, 30, 128256, 128256);
}

TEST_F(FusedKernelsOnGpu, StepOfGpt2) {
  for (const bool splits_backward : {false, true})
    check_gpt2(fused_kernels(device_), device_,
               {{"layers", 2}, {"width", 128}, {"heads", 2}, {"sequence", 64}, {"vocabulary", 131}},
               splits_backward);
}

}  // namespace
}  // namespace shardmark

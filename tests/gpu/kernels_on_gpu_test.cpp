// Tests the fused kernels on a GPU: the checks of mpi/kernel_checks.h with shapes of GPT-2, Llama and ResNet,
// and training steps compared with PyTorch's kernels. RANKS 1
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/kernel_checks.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class FusedKernelsOnGpu : public GpuTest {};

// This test needs no GPU. cli/bundle.sh runs it in a bundle, in which this is the only test program.
TEST(FusedKernels, AreCompiledByNvrtc) {
  EXPECT_EQ(compile_kernel("column_sum.cu", "column_totals", "sm_90").log, "");
}

TEST_F(FusedKernelsOnGpu, LayerNorm) {
  for (const int64_t rows : {1, 37, 5000})
    for (const int64_t channels : {48, 129, 768, 1600, 2000})
      for (const bool adds : {false, true})
        check_layer_norm(fused_kernels(device_), device_, rows, channels, adds);
}

TEST_F(FusedKernelsOnGpu, OfLlamasLayers) {
  at::manual_seed(6);
  for (const int64_t channels : {129, 2048, 3072, 4096, 8192})
    for (const bool adds : {false, true})
      check_rms_norm(fused_kernels(device_), device_, 1500, channels, adds);
  check_swiglu(fused_kernels(device_), device_, 300, 8191);
  for (const bool has_positions : {false, true})
    check_rotary(fused_kernels(device_), device_, 128, has_positions);
}

// Rows and channels of ResNet-50 from its stem to its last block, and shapes that divide nothing.
TEST_F(FusedKernelsOnGpu, BatchNorm) {
  at::manual_seed(9);
  for (const auto& [samples, channels, pixels] :
       {std::tuple(2, 64, 112 * 112), {8, 256, 56 * 56}, {8, 2048, 49}, {3, 129, 100}, {5, 40, 1}})
    for (const auto& [adds, relu] : {std::pair(false, false), {false, true}, {true, true}})
      check_batch_norm(fused_kernels(device_), device_, {samples, channels, pixels, adds, relu});
  check_batch_norm(
      fused_kernels(device_), device_,
      {.samples = 8, .channels = 64, .pixels = 3136, .adds = false, .relu = true, .offset = 1000});
  check_batch_norm(
      fused_kernels(device_), device_,
      {.samples = 8, .channels = 64, .pixels = 49, .adds = true, .relu = true, .recomputes = true});
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

TEST_F(FusedKernelsOnGpu, CodesOfEightBits) {
  at::manual_seed(5);
  check_fp8(fused_kernels(device_), device_, 208, 80);
  check_fp8(fused_kernels(device_), device_, 4096, 3072);
}

TEST_F(FusedKernelsOnGpu, AdamW) {
  for (const int64_t numel : {1, 37, 100003, 5000000})
    for (const bool divides : {false, true}) check_adamw(fused_kernels(device_), device_, numel, divides);
}

// Tests with and without accumulated main gradients, and with and without clipping.
TEST_F(FusedKernelsOnGpu, TrainAsTorchsDo) {
  for (const int64_t accumulation : {1, 2})
    for (const double clip_norm : {0.0, 0.1}) {
      Case c{"gpt2(layers=2, width=128, heads=2, sequence=64, vocabulary=131)",
             "adamw(lr=0.001, weight_decay=0.1)"};
      c.precision = Precision{at::kBFloat16, at::kFloat, at::kFloat};
      c.accumulation = accumulation;
      c.clip_norm = clip_norm;
      c.num_steps = 8;
      const Outcomes by_torch = train(c, "single", *alone_);
      c.fused = fused_kernels(device_);
      const Outcomes by_ours = train(c, "single", *alone_);
      EXPECT_LE(largest_relative(by_ours.losses, by_torch.losses), 1e-2);
      EXPECT_LE(largest_relative(by_ours.norms, by_torch.norms), 3e-2);
      EXPECT_LE(parameter_error(by_ours, by_torch), 0.15);
    }
}

TEST_F(FusedKernelsOnGpu, StepsOfModels) {
  for (const char* model : {"gpt2(layers=2, width=128, heads=2, sequence=64, vocabulary=131)",
                            "llama(layers=2, width=128, heads=2, kv_heads=1, inner=200, sequence=64, "
                            "vocabulary=131)"})
    for (const bool splits_backward : {false, true})
      check_step(fused_kernels(device_), device_, model, splits_backward);
}

TEST_F(FusedKernelsOnGpu, StepsOfResidualBlocks) {
  for (const char* model : {"resnet(layers=18, width=64, image=32)", "resnet(layers=50, width=64, image=64)"})
    for (const bool splits_backward : {false, true})
      check_step(fused_kernels(device_), device_, model, splits_backward, /*num_blocks=*/2);
}

// One step, because batch norm amplifies rounding from layer to layer.
TEST_F(FusedKernelsOnGpu, TrainResNetAsTorchsDo) {
  Case c{"resnet(layers=18, width=64, image=32)", "adamw(lr=0.001, weight_decay=0.1)"};
  c.precision = Precision{at::kBFloat16, at::kFloat, at::kFloat};
  c.batch_size = 32;
  c.num_steps = 1;
  const Outcomes by_torch = train(c, "single", *alone_);
  c.fused = fused_kernels(device_);
  const Outcomes by_ours = train(c, "single", *alone_);
  EXPECT_LE(largest_relative(by_ours.losses, by_torch.losses), 1e-2);
  EXPECT_LE(largest_relative(by_ours.norms, by_torch.norms), 1e-1);
}

}  // namespace
}  // namespace shardmark

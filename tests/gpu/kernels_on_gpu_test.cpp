// Tests the fused kernels on a GPU: the checks of mpi/kernel_checks.h with shapes of GPT-2, Llama and ResNet,
// and training steps compared with PyTorch's kernels.
// RANKS 1
#include "models/experts.h"
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
    for (const int64_t channels : {48, 129, 768, 1280, 1600, 8192, 8200})
      for (const bool adds : {false, true})
        check_layer_norm(fused_kernels(device_), device_, rows, channels, adds);
}

TEST_F(FusedKernelsOnGpu, OfLlamasLayers) {
  at::manual_seed(6);
  for (const int64_t channels : {129, 2048, 3072, 4096, 8192})
    for (const bool adds : {false, true})
      check_rms_norm(fused_kernels(device_), device_, 1500, channels, adds);
  check_swiglu(fused_kernels(device_), device_, 300, 8191);
  for (const int64_t columns : {129, 768, 14336})
    check_weighted_swiglu(fused_kernels(device_), device_, 1500, columns);
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
  for (const int64_t columns : {33, 2304})
    check_projection_in_three(fused_kernels(device_), device_, 5000, columns);
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
  check_softmax(fused_kernels(device_), device_, 30, 25105, 25152);
  check_softmax(fused_kernels(device_), device_, 30, 128256, 128256);
}

TEST_F(FusedKernelsOnGpu, CodesOfEightBits) {
  at::manual_seed(5);
  check_fp8(fused_kernels(device_), device_, 208, 80);
  check_fp8(fused_kernels(device_), device_, 4096, 3072);
}

TEST_F(FusedKernelsOnGpu, ProductsOfEightBitsEqualEmulatedOnes) {
  if (!has_fp8_products(device_)) GTEST_SKIP() << "the GPU has no products of 8 bits";
  at::manual_seed(9);
  for (const at::ScalarType gradients : {at::kFloat8_e5m2, at::kFloat8_e4m3fn}) {
    for (const auto scaling : {Fp8::Scaling::tensor, Fp8::Scaling::row})
      check_fp8_products({scaling, gradients, {}}, device_);
    if (has_fp8_products(device_, /*by_block=*/true))
      check_fp8_products({Fp8::Scaling::block, gradients, {}}, device_);
  }
}

// Experts' tokens are no multiples of 16, and one expert has none.
TEST_F(FusedKernelsOnGpu, ExpertsMultiplyEightBitsAsOnTheCpu) {
  at::manual_seed(10);
  const at::Tensor logits = at::randn({50, 4}), x = at::randn({50, 64}), dy = at::randn({50, 64});
  const at::Tensor choices =
      at::stack({at::arange(50, at::kLong).remainder(2), at::full({50}, 3, at::kLong)}, 1);
  const std::vector<at::Tensor> weights = {at::randn({4, 32, 64}) * 0.2, at::randn({4, 32, 64}) * 0.2,
                                           at::randn({4, 64, 32}) * 0.2};
  const auto results = [&](at::Device device, const Fp8& fp8) {
    auto model = make_model(resolve(choice_from_text("moe(layers=1, width=64, heads=2, kv_heads=2, inner=32, "
                                                     "experts=4, top_k=2, sequence=8, vocabulary=37)"),
                                    specs::model_spec("moe").options, "model"),
                            at::kBFloat16, device);
    model->fp8 = fp8;
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& one : {x, weights[0], weights[1], weights[2]})
      leaves.push_back(one.to(device, at::kBFloat16).requires_grad_(true));
    const at::Tensor y =
        experts(leaves[0], leaves[1], leaves[2], leaves[3],
                routed_to(choices.to(device), logits.to(device, at::kBFloat16)), model.get());
    std::vector<at::Tensor> all = torch::autograd::grad({y}, leaves, {dy.to(device, at::kBFloat16)});
    all.push_back(y.detach());
    return all;
  };
  for (const auto scaling : {Fp8::Scaling::tensor, Fp8::Scaling::row, Fp8::Scaling::block}) {
    const std::vector<at::Tensor> on_cpu = results(at::kCPU, {scaling, at::kFloat8_e5m2, {}}),
                                  here =
                                      results(device_, {scaling, at::kFloat8_e5m2, fused_kernels(device_)});
    for (size_t i = 0; i < here.size(); ++i) {
      const at::Tensor expected = on_cpu[i].to(at::kDouble);
      EXPECT_LE(((here[i].to(at::kCPU, at::kDouble) - expected).norm() / expected.norm()).item<double>(),
                0.03)
          << i;
    }
  }
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
                            "vocabulary=131)",
                            "moe(layers=2, width=128, heads=2, kv_heads=1, inner=200, sequence=64, "
                            "vocabulary=131, experts=4, top_k=2, routing=balanced)"})
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

// Tests the kernels of src/kernels: their results on an emulated GPU, and that NVRTC compiles them for real
// GPUs.
// RANKS 1
#include <gtest/gtest.h>

#include <iostream>
#include <regex>

#include "tests/mpi/emulated_kernels.h"
#include "tests/mpi/kernel_checks.h"

namespace shardmark {
namespace {

// 129 channels are odd. 264 channels are 33 packs, one more than a warp has threads. 1,040 channels are too
// many for a warp, and 2,056 take two packs of a thread, of which one thread alone has the second. 70 rows
// are more than two blocks on each of two multiprocessors process at once.
TEST(FusedKernels, LayerNorm) {
  at::manual_seed(1);
  for (const int64_t rows : {1, 37, 70})
    for (const int64_t channels : {48, 129, 264, 1040, 2056})
      for (const bool adds : {false, true})
        check_layer_norm(emulated_kernels(), at::kCPU, rows, channels, adds);
}

// 2056 channels take two packs of a thread, of which one thread alone has the second. 270 take two elements.
TEST(FusedKernels, RmsNorm) {
  at::manual_seed(6);
  for (const int64_t rows : {1, 11})
    for (const int64_t channels : {48, 129, 270, 2056})
      for (const bool adds : {false, true})
        check_rms_norm(emulated_kernels(), at::kCPU, rows, channels, adds);
}

// Rows and channels that fill blocks and packs, and that do not: 64 channels take 8 threads of a warp, 72
// take 16, 264 take more than a block's width, and 129, 5 and 2 go one by one. There are fewer rows than
// threads, and several parts of them. Of two rows the gradient would be almost zero, the rest of a
// cancellation.
TEST(FusedKernels, BatchNorm) {
  at::manual_seed(9);
  for (const auto& [samples, pixels] : {std::pair(5, 1), {3, 7}, {4, 150}})
    for (const int64_t channels : {2, 5, 16, 64, 72, 129, 264})
      for (const auto& [adds, relu] : {std::pair(false, false), {false, true}, {true, true}})
        check_batch_norm(emulated_kernels(), at::kCPU, {samples, channels, pixels, adds, relu});
}

// The spread is a quarter of the distance between two numbers in bf16 of the mean's size, so that most values
// are equal: the sum of squares of x itself would have lost the variance.
TEST(FusedKernels, BatchNormOfALargeMeanAndASmallSpread) {
  at::manual_seed(10);
  for (const int64_t channels : {5, 64})
    check_batch_norm(emulated_kernels(), at::kCPU,
                     {.samples = 4,
                      .channels = channels,
                      .pixels = 500,
                      .adds = false,
                      .relu = true,
                      .spread = 1,
                      .offset = 1000});
}

TEST(FusedKernels, BatchNormThatIsRecomputedLeavesItsRunningStatistics) {
  at::manual_seed(11);
  check_batch_norm(
      emulated_kernels(), at::kCPU,
      {.samples = 3, .channels = 24, .pixels = 9, .adds = true, .relu = true, .recomputes = true});
}

TEST(FusedKernels, Swiglu) {
  at::manual_seed(7);
  for (const int64_t columns : {1, 48, 1001}) check_swiglu(emulated_kernels(), at::kCPU, 7, columns);
  for (const int64_t columns : {1, 48, 270, 2056})
    check_weighted_swiglu(emulated_kernels(), at::kCPU, 7, columns);
}

TEST(FusedKernels, Rotary) {
  at::manual_seed(8);
  for (const int64_t width : {2, 16, 80})
    for (const bool has_positions : {false, true})
      check_rotary(emulated_kernels(), at::kCPU, width, has_positions);
}

TEST(FusedKernels, ProjectionAndItsBias) {
  at::manual_seed(2);
  for (const int64_t rows : {1, 37, 300})
    for (const int64_t columns : {33, 48, 528})
      check_projection_in_three(emulated_kernels(), at::kCPU, rows, columns);
  for (const int64_t rows : {1, 37, 300})
    for (const int64_t columns : {33, 48, 520})
      for (const bool gelu : {false, true})
        check_projection(emulated_kernels(), at::kCPU, rows, columns, gelu);
}

// A row takes one pack per thread, several packs per thread, or more than a thread can hold at once.
TEST(FusedKernels, CrossEntropyAndItsGradient) {
  at::manual_seed(3);
  check_cross_entropy(emulated_kernels(), at::kCPU, 7, 2, 2);
  check_cross_entropy(emulated_kernels(), at::kCPU, 7, 31, 31);
  check_cross_entropy(emulated_kernels(), at::kCPU, 7, 131, 192);
  check_cross_entropy(emulated_kernels(), at::kCPU, 4, 5003, 5056);
  check_cross_entropy(emulated_kernels(), at::kCPU, 3, 10001, 10048);
  check_cross_entropy(emulated_kernels(), at::kCPU, 3, 70001, 70016);
  check_cross_entropy(emulated_kernels(), at::kCPU, 3, 3001, 3001);
  check_cross_entropy(emulated_kernels(), at::kCPU, 3, 9001, 9001);
  check_softmax(emulated_kernels(), at::kCPU, 7, 131, 192);
  check_softmax(emulated_kernels(), at::kCPU, 3, 3001, 3001);
  check_softmax(emulated_kernels(), at::kCPU, 3, 70001, 70016);
}

TEST(FusedKernels, AdamW) {
  at::manual_seed(4);
  for (const int64_t numel : {1, 37, 40, 9001})
    for (const bool divides : {false, true}) check_adamw(emulated_kernels(), at::kCPU, numel, divides);
}

// Tiles that end inside of the matrix, in either dimension.
TEST(FusedKernels, CodesOfEightBits) {
  at::manual_seed(5);
  for (const int64_t rows : {16, 64, 208})
    for (const int64_t columns : {16, 80, 128}) check_fp8(emulated_kernels(), at::kCPU, rows, columns);
  for (const int64_t rows : {32, 64, 160}) check_fp8(emulated_kernels(), at::kCPU, rows, 96);
}

TEST(FusedKernels, StepsOfModels) {
  for (const char* model : {"gpt2(layers=2, width=48, heads=3, sequence=16, vocabulary=131)",
                            "llama(layers=2, width=48, heads=3, kv_heads=1, inner=72, sequence=16, "
                            "vocabulary=131)",
                            "moe(layers=2, width=48, heads=3, kv_heads=1, inner=72, sequence=16, "
                            "vocabulary=131, experts=4, top_k=2, routing=balanced)"})
    for (const bool splits_backward : {false, true})
      check_step(emulated_kernels(), at::kCPU, model, splits_backward);
}

// The stem and the first residual block: one whose shortcut is the identity, and one with a projection.
TEST(FusedKernels, StepsOfResidualBlocks) {
  for (const char* model : {"resnet(layers=18, width=16, image=16)", "resnet(layers=50, width=16, image=64)"})
    for (const bool splits_backward : {false, true})
      check_step(emulated_kernels(), at::kCPU, model, splits_backward, /*num_blocks=*/2);
}

// Compiles the kernels for GPT-2 124M and, with the widths of their norms, for its larger versions and
// Llama's. No kernel may spill registers to memory.
TEST(FusedKernels, CompileForRealGpusWithoutWarnings) {
  std::vector<std::pair<std::string, std::string>> kernels = {
      {"adamw.cu", "adamw<8>"},
      {"adamw.cu", "adamw<1>"},
      {"batch_norm.cu", "batch_norm_moments<1>"},
      {"batch_norm.cu", "batch_norm_moments<8>"},
      {"batch_norm.cu", "batch_norm_statistics"},
      {"batch_norm.cu", "batch_norm_forward<1>"},
      {"batch_norm.cu", "batch_norm_forward<8>"},
      {"batch_norm.cu", "batch_norm_backward_sums<1>"},
      {"batch_norm.cu", "batch_norm_backward_sums<8>"},
      {"batch_norm.cu", "batch_norm_backward<1>"},
      {"batch_norm.cu", "batch_norm_backward<8>"},
      {"column_sum.cu", "column_partials<8>"},
      {"column_sum.cu", "column_partials<1>"},
      {"column_sum.cu", "gelu_backward<8>"},
      {"column_sum.cu", "gelu_backward<1>"},
      {"column_sum.cu", "joined_partials<8>"},
      {"column_sum.cu", "joined_partials<1>"},
      {"column_sum.cu", "column_totals"},
      {"cross_entropy.cu", "softmax_cross_entropy<8, 7>"},
      {"cross_entropy.cu", "softmax_cross_entropy<8, 8>"},
      {"cross_entropy.cu", "softmax_cross_entropy<1, 8>"},
      {"rotary.cu", "rotary<1>"},
      {"rotary.cu", "rotary<8>"},
      {"swiglu.cu", "swiglu_forward<1>"},
      {"swiglu.cu", "swiglu_forward<8>"},
      {"swiglu.cu", "swiglu_backward<1>"},
      {"swiglu.cu", "swiglu_backward<8>"},
      {"swiglu.cu", "weighted_swiglu_forward<1>"},
      {"swiglu.cu", "weighted_swiglu_forward<8>"},
      {"swiglu.cu", "weighted_swiglu_backward<1>"},
      {"swiglu.cu", "weighted_swiglu_backward<8>"},
      {"fp8.cu", "fp8_largest<false>"},
      {"fp8.cu", "fp8_largest<true>"},
      {"fp8.cu", "fp8_round<2, false>"},
      {"fp8.cu", "fp8_round<2, true>"},
      {"fp8.cu", "fp8_round<3, false>"},
      {"fp8.cu", "fp8_round<3, true>"},
      {"fp8.cu", "fp8_round_blocks<2>"},
      {"fp8.cu", "fp8_round_blocks<3>"}};
  for (const char* shape : {"<768, 8>", "<1024, 8>", "<129, 1>"})
    for (const char* name : {"layer_norm_forward", "layer_norm_backward"})
      kernels.emplace_back("layer_norm.cu", std::string(name) + shape);
  // GPT-2 large and XL have one pack of a thread, as Llama 1B has; 3B and 8B of Llama have two, and 70B
  // has 4.
  for (const char* shape : {"<false, 1, 4>", "<false, 8, 1>", "<false, 8, 2>", "<false, 8, 4>",
                            "<true, 8, 1>", "<true, 8, 2>", "<true, 8, 4>"})
    for (const char* name : {"row_norm_forward", "row_norm_backward"})
      kernels.emplace_back("row_norm.cu", std::string(name) + shape);
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"})
    for (const auto& [text, kernel] : kernels) {
      const CompiledKernel compiled = compile_kernel(text, kernel, architecture, "--ptxas-options=-v");
      EXPECT_FALSE(compiled.image.empty());
      EXPECT_FALSE(compiled.name.empty());
      std::smatch used;
      ASSERT_TRUE(std::regex_search(compiled.log, used, std::regex("Used ([0-9]+) registers")))
          << compiled.log;
      if (text != "column_sum.cu")
        std::cout << architecture << " " << kernel << ": " << used[1] << " registers\n";
      EXPECT_NE(compiled.log.find(" 0 bytes stack frame, 0 bytes spill stores"), std::string::npos)
          << kernel << "\n"
          << compiled.log;
      EXPECT_EQ(compiled.log.find("warning"), std::string::npos) << kernel << "\n" << compiled.log;
    }
}

// If the compiler does not know a GPU, it generates PTX for the newest architecture that is older. The driver
// compiles that for the GPU.
TEST(FusedKernels, GoToGpusNewerThanTheCompiler) {
  EXPECT_EQ(kernel_architecture(90, {75, 80, 90, 100}), "sm_90");
  EXPECT_EQ(kernel_architecture(100, {75, 80, 90, 100}), "sm_100");
  EXPECT_EQ(kernel_architecture(199, {75, 80, 90, 100}), "compute_100");
  EXPECT_EQ(kernel_architecture(95, {75, 80, 90, 100}), "compute_90")
      << "PTX of a newer GPU would not run on it";
  EXPECT_EQ(kernel_architecture(70, {75, 80, 90, 100}), "sm_70") << "for NVRTC to refuse";
  const std::vector<int> known = known_capabilities();
  ASSERT_FALSE(known.empty());
  for (const int capability : {120, 121, 199}) {
    const std::string architecture = kernel_architecture(capability, known);
    SCOPED_TRACE(architecture);
    const CompiledKernel compiled = compile_kernel("adamw.cu", "adamw<8>", architecture);
    EXPECT_EQ(compiled.log, "");
    EXPECT_FALSE(compiled.name.empty());
    const std::string target = ".target " + std::regex_replace(architecture, std::regex("compute_"), "sm_");
    const bool is_ptx = compiled.image.find(target) != std::string::npos;
    EXPECT_EQ(is_ptx, architecture.starts_with("compute_")) << compiled.image.substr(0, 400);
    if (is_ptx) {
      EXPECT_EQ(compiled.image.back(), '\0') << "the driver reads PTX as text up to its end";
      EXPECT_NE(compiled.image.find(compiled.name), std::string::npos);
    }
  }
  EXPECT_TRUE(kernel_architecture(199, known).starts_with("compute_"));
}

// A separate test, because cli/fused_kernels.sh runs it where no CUDA toolkit is installed.
TEST(FusedKernels, AreCompiledByNvrtc) {
  EXPECT_EQ(compile_kernel("column_sum.cu", "column_totals", "sm_90").log, "");
}

TEST(FusedKernels, AMistakeInATextIsTold) {
  try {
    compile_kernel("column_sum.cu", "no_such_kernel<8>", "sm_90");
    FAIL() << "compiled";
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_kernel"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace shardmark

// The fused output layer and loss equal the plain ones: exactly in fp64, within rounding in bf16; and so does
// the loss of ranks that share a vocabulary.
// RANKS 1
#include "models/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/parallel.h"
#include "tests/mpi/emulated_kernels.h"

namespace shardmark {
namespace {

struct Outcome {
  at::Tensor loss, dx, dweight;
};

struct Problem {
  at::Tensor x, weight, targets;

  Problem(int64_t rows, int64_t width, int64_t classes, double spread) {
    at::manual_seed(5);
    x = at::randn({rows, width}, at::kDouble);
    weight = at::randn({classes, width}, at::kDouble) * spread;
    targets = at::randint(classes, {rows}, at::kLong);
  }

  // Returns loss(x, weight) in this type, and the gradients for an incoming gradient of 3.7.
  template <class Loss>
  Outcome of(at::ScalarType dtype, const Loss& loss) const {
    const at::Tensor a = x.to(dtype, false, true).set_requires_grad(true),
                     b = weight.to(dtype, false, true).set_requires_grad(true);
    const at::Tensor value = loss(a, b);
    value.backward(at::full_like(value, 3.7));
    return {value.detach().to(at::kDouble), a.grad().to(at::kDouble), b.grad().to(at::kDouble)};
  }
  Outcome plain(at::ScalarType dtype = at::kDouble) const {
    return of(dtype, [&](const at::Tensor& a, const at::Tensor& b) {
      return at::cross_entropy_loss(at::linear(a, b), targets);
    });
  }
  Outcome fused(at::ScalarType dtype, int64_t multiple) const {
    return of(dtype, [&](const at::Tensor& a, const at::Tensor& b) {
      return linear_cross_entropy(a, b, targets, {}, multiple);
    });
  }
};

double distance_between(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

void expect_near(const Outcome& measured, const Outcome& expected, double tolerance) {
  EXPECT_LE(distance_between(measured.loss, expected.loss), tolerance);
  EXPECT_LE(distance_between(measured.dx, expected.dx), tolerance);
  EXPECT_LE(distance_between(measured.dweight, expected.dweight), tolerance);
}

constexpr double kRounding = 0x1p-9;  // relative rounding error of bf16

TEST(LinearCrossEntropy, EqualsThePlainLossWithAndWithoutPadding) {
  for (const int64_t classes : {2, 31, 64, 65})
    for (const double spread : {0.01, 0.3, 3.0})
      for (const int64_t multiple : {int64_t{1}, kRowMultiple}) {
        SCOPED_TRACE(std::to_string(classes) + " classes, multiple " + std::to_string(multiple));
        const Problem problem(7, 12, classes, spread);
        expect_near(problem.fused(at::kDouble, multiple), problem.plain(), 1e-12);
        expect_near(problem.fused(at::kFloat, multiple), problem.plain(), 1e-5);
      }
}

// The plain version in fp64 has the same operands, rounded to bf16. Both products round their results.
TEST(LinearCrossEntropy, RoundsInBf16AsFloatsThatAreRoundedAtLast) {
  Problem problem(200, 32, 301, 0.2);
  problem.x = problem.x.to(at::kBFloat16).to(at::kDouble);
  problem.weight = problem.weight.to(at::kBFloat16).to(at::kDouble);
  const Outcome exact = problem.plain();
  for (const int64_t multiple : {int64_t{1}, kRowMultiple}) {
    const Outcome fused = problem.fused(at::kBFloat16, multiple);
    expect_near(fused, exact, 2 * kRounding);
    EXPECT_LE(distance_between(fused.loss, exact.loss), kRounding / 10)
        << "roundings of a row do not average out";
  }
}

// The target has a probability of 1 - rest. The loss and its gradient are about as large as `rest`.
TEST(LinearCrossEntropy, KeepsTheDigitsOfSmallRests) {
  for (const double rest : {0.3, 1e-2, 1e-3, 1e-5}) {
    Problem problem(1, 2, 2, 1);
    problem.x = at::tensor({1.0, 0.0}, at::kDouble).view({1, 2});
    problem.weight = at::tensor({std::log((1 - rest) / rest), 0.0, 0.0, 0.0}, at::kDouble).view({2, 2});
    problem.weight = problem.weight.to(at::kBFloat16).to(at::kDouble);
    problem.targets = at::zeros({1}, at::kLong);
    expect_near(problem.fused(at::kBFloat16, 1), problem.plain(), 4 * kRounding);
  }
}

TEST(LinearCrossEntropy, IsFiniteWhereTheTargetIsImpossible) {
  Problem problem(1, 1, 2, 1);
  problem.x = at::ones({1, 1}, at::kDouble);
  problem.weight = at::tensor({300.0, 0.0}, at::kDouble).view({2, 1});
  problem.targets = at::ones({1}, at::kLong);
  const Outcome fused = problem.fused(at::kBFloat16, kRowMultiple);
  EXPECT_NEAR(fused.loss.item<double>(), -std::log(std::numeric_limits<float>::min()), 0.1);
  EXPECT_LE(distance_between(fused.dweight, problem.plain().dweight), kRounding);
}

TEST(LinearCrossEntropy, IsNoNumberWhereALogitIsNone) {
  Problem problem(3, 4, 5, 1);
  problem.x[1][2] = std::nan("");
  const Outcome fused = problem.fused(at::kBFloat16, kRowMultiple);
  EXPECT_TRUE(std::isnan(fused.loss.item<double>()));
  EXPECT_TRUE(fused.dweight.isnan().any().item<bool>());
}

TEST(AlignedLinear, EqualsThePlainOne) {
  const Problem problem(7, 12, 31, 1);
  const auto loss = [&](const at::Tensor& logits) { return at::cross_entropy_loss(logits, problem.targets); };
  const Outcome aligned = problem.of(
      at::kDouble, [&](const at::Tensor& a, const at::Tensor& b) { return loss(aligned_linear(a, b)); });
  expect_near(aligned, problem.plain(), 1e-12);
  const at::Tensor logits = aligned_linear(problem.x, problem.weight);
  EXPECT_EQ(logits.size(1), 31);
  EXPECT_EQ(logits.stride(0), kRowMultiple);
}

// The ranks of a tensor-parallel group, one after the other. The first time, a rank does not get what later
// ones give to the exchange.
class SharedVocabulary : public testing::Test {
 protected:
  struct Result {
    at::Tensor loss, gradient;  // of all ranks' logits, without padding
  };
  // logits: [N, V] in bf16, of which each rank has `part` columns. The loss has a gradient of 3.7.
  static Result of_ranks(const at::Tensor& logits, const at::Tensor& targets, int64_t part,
                         const Kernels& fused) {
    const int64_t words = logits.size(1), ranks = (words + part - 1) / part;
    const at::Tensor padded = at::constant_pad_nd(logits, {0, ranks * part - words}, 5);
    std::vector<at::Tensor> given(static_cast<size_t>(ranks)), gradients;
    Result result;
    for (const bool is_known : {false, true})
      for (int64_t rank = 0; rank < ranks; ++rank) {
        specs::ModelTable table;
        table.split = {.tensor = ranks, .tensor_index = rank};
        Model model(table, at::kBFloat16, at::kCPU);
        model.fused = fused;
        model.start_collective = [&](specs::Dimension, specs::Collective, const at::Tensor& out,
                                     const at::Tensor& in) {
          given[static_cast<size_t>(rank)] = in.clone();
          for (int64_t other = 0; other < ranks; ++other)
            if (const at::Tensor& known = given[static_cast<size_t>(other)]; known.defined())
              out.narrow(0, other * in.size(0), in.size(0)).copy_(known);
          return [] {};
        };
        const at::Tensor leaf = padded.narrow(1, rank * part, part).contiguous().requires_grad_(true);
        // The loss takes the memory of what a product has made.
        const at::Tensor loss = loss_over_sharded_vocabulary(model, leaf * 1, {{}, targets}, words);
        if (!is_known) continue;
        loss.backward(at::full_like(loss, 3.7));
        gradients.push_back(leaf.grad().to(at::kDouble));
        result.loss = loss.detach().to(at::kDouble);
      }
    const at::Tensor all = at::cat(gradients, 1);
    EXPECT_TRUE(all.narrow(1, words, all.size(1) - words).eq(0).all().item<bool>())
        << "padding has a gradient";
    result.gradient = all.narrow(1, 0, words);
    return result;
  }
  static Result exact(const at::Tensor& logits, const at::Tensor& targets) {
    const at::Tensor leaf = logits.to(at::kDouble).requires_grad_(true);
    const at::Tensor loss = at::cross_entropy_loss(leaf, targets);
    loss.backward(at::full_like(loss, 3.7));
    return {loss.detach(), leaf.grad()};
  }
};

// Parts with and without padding in the last one, in packs of 8 and alone.
TEST_F(SharedVocabulary, IsRoundedTwiceInBf16) {
  for (const auto& [words, part] : {std::pair<int64_t, int64_t>{304, 152}, {301, 104}, {299, 101}})
    for (const Kernels& fused : {Kernels(), emulated_kernels()}) {
      SCOPED_TRACE(std::to_string(words) + " words in parts of " + std::to_string(part));
      at::manual_seed(6);
      const at::Tensor logits = (at::randn({40, words}) * 3).to(at::kBFloat16),
                       targets = at::randint(words, {40}, at::kLong);
      const Result expected = exact(logits, targets), measured = of_ranks(logits, targets, part, fused);
      EXPECT_LE(distance_between(measured.loss, expected.loss), 1e-6);
      EXPECT_LE(distance_between(measured.gradient, expected.gradient), 2 * kRounding);
    }
}

// The target has a probability of 1 - rest, on either rank.
TEST_F(SharedVocabulary, KeepsTheDigitsOfSmallRests) {
  for (const double rest : {0.3, 1e-2, 1e-3})
    for (const int64_t target : {0, 3})
      for (const Kernels& fused : {Kernels(), emulated_kernels()}) {
        at::Tensor logits = at::zeros({1, 4}, at::kDouble);
        logits[0][target] = std::log(3 * (1 - rest) / rest);
        logits = logits.to(at::kBFloat16);
        const at::Tensor targets = at::full({1}, target, at::kLong);
        const Result expected = exact(logits, targets), measured = of_ranks(logits, targets, 2, fused);
        EXPECT_LE(distance_between(measured.loss, expected.loss), 4 * kRounding);
        EXPECT_LE(distance_between(measured.gradient, expected.gradient), 4 * kRounding) << rest;
      }
}

}  // namespace
}  // namespace shardmark

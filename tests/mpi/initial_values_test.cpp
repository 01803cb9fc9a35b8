// Tests the initial values of parameters.
// RANKS 1
#include <gtest/gtest.h>

#include <cmath>

#include "models/initial.h"

namespace shardmark {
namespace {

TEST(InitialValues, DependOnSeedAndNameAlone) {
  const specs::ParameterSpec one{"h.0.mlp.c_fc.weight", {300, 200}, specs::Initial::normal, 0.02};
  specs::ParameterSpec other = one;
  other.name = "h.1.mlp.c_fc.weight";
  const at::Tensor first = initial_value(one, 1, at::kDouble);
  EXPECT_FALSE(at::allclose(first, initial_value(other, 1, at::kDouble)));
  EXPECT_FALSE(at::allclose(first, initial_value(one, 2, at::kDouble)));
  EXPECT_TRUE(at::equal(first, initial_value(one, 1, at::kDouble)));  // independent of what was drawn before
  EXPECT_TRUE(at::equal(first.to(at::kFloat), initial_value(one, 1, at::kFloat)));
  EXPECT_NEAR(first.mean().item<double>(), 0, 5 * 0.02 / std::sqrt(60000));
  EXPECT_NEAR(first.std().item<double>() / 0.02, 1, 0.02);
  const at::Tensor uniform = initial_value({"u", {1000}, specs::Initial::uniform, 0.5}, 1, at::kFloat);
  EXPECT_LE(uniform.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(uniform.std().item<double>(), 0.5 / std::sqrt(3), 0.02);
}

}  // namespace
}  // namespace shardmark

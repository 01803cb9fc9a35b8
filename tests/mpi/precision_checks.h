// Requirements for low precision under all strategies, on CPUs and on GPUs.
#pragma once

#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark::checks {

// The loss scale makes the gradients of one rank overflow. All ranks skip that update and continue with half
// the scale.
inline void leaves_out_non_finite_gradients(const std::string& strategy, Communicator& comm) {
  SCOPED_TRACE(strategy);
  const at::Device device = comm.device();
  const auto model = make_model(resolved_model(kModels[0]), at::kHalf, device);
  TrainingState state = make_state({*model, comm, resolved_optimizer(kOptimizers[1]), /*seed=*/7,
                                    Precision{at::kHalf, at::kFloat, at::kHalf}},
                                   strategy);
  state.publish();
  GradientGuard guard(/*clip_norm=*/0, /*scales_loss=*/true, device);
  Executor executor(state, guard, /*seed=*/7);
  const auto batch = [&](double scale) {
    const auto on = at::TensorOptions(device);
    return Batch{at::full({2, 13}, scale, on.dtype(at::kHalf)), at::zeros({2}, on.dtype(at::kLong))};
  };
  const auto weights = [&] {
    std::map<std::string, at::Tensor> all;
    state.visit(State::weights, [&](const auto& name, const auto& value) { all[name] = value; });
    return all;
  };
  const auto before = weights();
  const double scale = guard.loss_scale().item<double>();
  executor.step([&] { return batch(comm.rank() == comm.size() - 1 ? 6e4 : 1); });
  EXPECT_EQ(guard.num_skipped(), 1);
  EXPECT_EQ(guard.loss_scale().item<double>(), scale / 2);
  for (const auto& [name, value] : weights()) EXPECT_TRUE(value.equal(before.at(name))) << name;
  for (int i = 0; i < 12; ++i) executor.step([&] { return batch(1); });  // until the scale is small enough
  EXPECT_LT(guard.num_skipped(), 13);
  bool moved = false;
  for (const auto& [name, value] : weights()) moved |= !value.equal(before.at(name));
  EXPECT_TRUE(moved);
}

}  // namespace shardmark::checks

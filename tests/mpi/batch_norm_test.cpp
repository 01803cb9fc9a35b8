// Synchronised batch norm over ranks equals plain batch norm over the whole batch in forward, backward and
// running statistics.
// RANKS 1 2 3
#include "models/batch_norm.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include "models/layers.h"

namespace shardmark {
namespace {

struct World {
  int rank = 0, size = 1;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
};

void add_ranks(const at::Tensor& tensor) {
  const MPI_Datatype type = tensor.scalar_type() == at::kDouble ? MPI_DOUBLE : MPI_FLOAT;
  ASSERT_TRUE(tensor.is_contiguous());
  MPI_Allreduce(MPI_IN_PLACE, tensor.data_ptr(), static_cast<int>(tensor.numel()), type, MPI_SUM,
                MPI_COMM_WORLD);
}

// Returns this rank's part of a whole batch. Rank r has r + 2 samples, so all ranks have different numbers of
// samples.
at::Tensor part(const at::Tensor& whole, const World& world) {
  const int64_t before = world.rank * 2 + world.rank * (world.rank - 1) / 2;
  return whole.narrow(0, before, world.rank + 2);
}
int64_t whole_size(const World& world) { return world.size * 2 + world.size * (world.size - 1) / 2; }

std::unique_ptr<Model> resnet(const char* statistics, at::ScalarType dtype) {
  const Options options = {{"layers", 20}, {"width", 5}, {"image", 9}, {"batch_norm", statistics}};
  auto model =
      make_model(resolve({"resnet", options}, specs::model_spec("resnet").options, "model"), dtype, at::kCPU);
  materialize(*model, 1);
  return model;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Tolerance {
  at::ScalarType dtype;
  double relative;
};
class BatchNormTest : public ::testing::TestWithParam<Tolerance> {};

TEST_P(BatchNormTest, OverRanksEqualsPlainOverTheWholeBatch) {
  const World world;
  const auto [dtype, relative] = GetParam();
  const auto plain = resnet("local", dtype), sync = resnet("sync", dtype);
  int64_t calls = 0;
  sync->start_collective = [&](auto, auto, const at::Tensor& out, const at::Tensor&) {
    ++calls, add_ranks(out);
    return [] {};
  };
  at::manual_seed(7);
  const int64_t samples = whole_size(world);
  const Batch whole{at::randn({samples, 3, 9, 9}, dtype), at::randint(10, {samples}, at::kLong)};
  const Batch mine{part(whole.inputs, world), part(whole.targets, world)};
  const auto loss_of = [](const Model& model, const Batch& batch) {
    at::Tensor h = batch.inputs;
    for (const auto& block : model.blocks()) h = block.forward(h, batch);
    return h;
  };
  loss_of(*plain, whole).backward();
  const at::Tensor share =
      at::scalar_tensor(static_cast<double>(mine.num_samples()) / static_cast<double>(samples), dtype);
  loss_of(*sync, mine).backward(share);

  std::vector<at::Tensor> expected, measured;
  for (const auto& group : plain->table().groups) {
    for (const auto& spec : group.parameters) {
      expected.push_back(plain->parameter(spec.name).grad().flatten());
      measured.push_back(sync->parameter(spec.name).grad().flatten());
    }
  }
  const at::Tensor gradient = at::cat(measured);
  add_ranks(gradient);
  EXPECT_LT(distance(gradient, at::cat(expected)), relative);
  for (const auto& [name, buffer] : plain->buffers())
    EXPECT_LT(distance(sync->buffer(name), buffer), relative) << name;
  EXPECT_EQ(calls, 2 * static_cast<int64_t>(plain->buffers().size()) / 2)
      << "one sum forward, one backward per norm";
}

// A mean far from zero is where computing the variance from sums of squares would lose digits.
TEST_P(BatchNormTest, IsExactWhereTheMeanIsFarFromZero) {
  const World world;
  const auto [dtype, relative] = GetParam();
  const auto plain = resnet("local", dtype), sync = resnet("sync", dtype);
  sync->start_collective = [&](auto, auto, const at::Tensor& out, const at::Tensor&) {
    add_ranks(out);
    return [] {};
  };
  at::manual_seed(7);
  const at::Tensor whole = at::randn({whole_size(world), 5, 6, 6}, at::kDouble).add_(30).to(dtype);
  const at::Tensor dy = at::randn_like(whole);
  const at::Tensor x = whole.clone().set_requires_grad(true),
                   x_mine = part(whole, world).clone().set_requires_grad(true);
  const at::Tensor y = BatchNorm(*plain, "bn1", BatchStatistics::local)(x);
  const at::Tensor y_mine = BatchNorm(*sync, "bn1", BatchStatistics::sync)(x_mine);
  y.backward(dy);
  y_mine.backward(part(dy, world));
  EXPECT_LT(distance(y_mine, part(y, world)), relative);
  EXPECT_LT(distance(x_mine.grad(), part(x.grad(), world)), relative);
}

// The statistics must be computed in fp32. In 16 bits, a mean of 30 would be off by 0.1, which is a tenth of
// the standard deviation.
TEST(BatchNorm, OverRanksRoundsActivationsAloneIn16Bits) {
  const World world;
  const auto plain = resnet("local", at::kDouble);
  for (const auto& [dtype, rounding] : {std::pair(at::kBFloat16, 0x1p-9), std::pair(at::kHalf, 0x1p-12)}) {
    const auto sync = resnet("sync", dtype);
    sync->start_collective = [&](auto, auto, const at::Tensor& out, const at::Tensor&) {
      add_ranks(out);
      return [] {};
    };
    plain->buffer("bn1.running_mean").zero_();
    at::manual_seed(7);
    const at::Tensor whole = at::randn({whole_size(world), 5, 6, 6}, at::kDouble).add_(30).to(dtype);
    const at::Tensor dy = at::randn_like(whole);
    const at::Tensor x = whole.to(at::kDouble).set_requires_grad(true),
                     x_mine = part(whole, world).clone().set_requires_grad(true);
    const at::Tensor y = BatchNorm(*plain, "bn1", BatchStatistics::local)(x);
    const at::Tensor y_mine = BatchNorm(*sync, "bn1", BatchStatistics::sync)(x_mine);
    EXPECT_EQ(y_mine.scalar_type(), dtype);
    y.backward(dy.to(at::kDouble));
    y_mine.backward(part(dy, world));
    EXPECT_LT(distance(y_mine.to(at::kDouble), part(y, world)), rounding);
    EXPECT_LT(distance(x_mine.grad().to(at::kDouble), part(x.grad(), world)), rounding);
    EXPECT_LT(distance(sync->buffer("bn1.running_mean").to(at::kDouble), plain->buffer("bn1.running_mean")),
              2 * rounding);
    const at::Tensor gradient = sync->parameter("bn1.weight").grad().to(at::kDouble);
    add_ranks(gradient);
    EXPECT_LT(distance(gradient, plain->parameter("bn1.weight").grad()), 2 * rounding);
    plain->parameter("bn1.weight").mutable_grad().reset();
  }
}

TEST_P(BatchNormTest, FrozenStatisticsAreConstants) {
  const auto model = resnet("frozen", GetParam().dtype);
  const at::Tensor before = model->buffer("bn1.running_mean").clone();
  const BatchNorm norm(*model, "bn1", BatchStatistics::frozen);
  const at::Tensor x = at::randn({2, 5, 6, 6}, GetParam().dtype);
  // Mean, variance, weight and bias are 0, 1, 1 and 0.
  EXPECT_LT(distance(norm(x), x / std::sqrt(1 + 1e-5)), GetParam().relative);
  EXPECT_TRUE(at::equal(model->buffer("bn1.running_mean"), before));
}

INSTANTIATE_TEST_SUITE_P(, BatchNormTest,
                         ::testing::Values(Tolerance{at::kFloat, 1e-5}, Tolerance{at::kDouble, 1e-10}),
                         [](const auto& info) { return info.param.dtype == at::kFloat ? "fp32" : "fp64"; });

}  // namespace
}  // namespace shardmark

// The harness against plain LibTorch: the same GPT-2 stepped by the training loop with `single`, and by a
// whole-graph forward and backward with the same fused optimizer. Their ratio is what blocks, strategy and
// clock cost:
//   shardmark_kernels --benchmark_filter=_step/real --benchmark_repetitions=15
//   --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include "comm/communicator.h"
#include "data/loader.h"
#include "laws/strategy_law.h"
#include "workloads/training_loop.h"

namespace shardmark {
namespace {

const Choice kAdamW{"adamw",
                    {{"lr", 3e-4}, {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}}};

Choice small_gpt2() {
  const Choice choice{"gpt2",
                      {{"layers", 4}, {"width", 256}, {"heads", 4}, {"sequence", 128}, {"vocabulary", 8192}}};
  return resolve(choice, laws::model_law("gpt2").options, "model");
}

Batch batch_for(const Model& model) {
  const auto source = make_source({"synthetic", {{"size", 64}}}, {model.table().sample, model.dtype(), 1});
  return source->fetch(DistributedSampler(64, 1, 0, /*batch_size=*/4, 1, 1).draw(0, 0));
}

void plain_step(benchmark::State& state) {
  const auto model = make_model(small_gpt2(), at::kFloat, at::kCPU);
  materialize(*model, 1);
  std::vector<FlatPiece> pieces;
  for (const auto& group : model->table().groups) {
    for (const auto& spec : group.parameters) {
      at::Tensor& parameter = model->parameter(spec.name);
      parameter.mutable_grad() = at::zeros_like(parameter);
      pieces.push_back({parameter.detach().view(-1), parameter.grad().view(-1)});
    }
  }
  const auto optimizer = make_optimizer(kAdamW, pieces);
  const Batch batch = batch_for(*model);
  for (auto _ : state) {
    at::Tensor h = batch.inputs;
    for (const auto& block : model->blocks()) h = block.forward(h, batch);
    torch::autograd::backward({h}, {});
    optimizer->step();
    for (auto& piece : pieces) piece.gradients.zero_();
  }
}

void harness_step(benchmark::State& state) {
  static const MpiSession session;
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("mpi", world, at::kCPU);
  const auto model = make_model(small_gpt2(), at::kFloat, at::kCPU);
  const auto strategy = make_strategy("single", {*model, *comm, Options::object(), kAdamW, 1, 1});
  PhaseClock clock(at::kCPU);
  TrainingLoop loop(*model, *strategy, clock, 1);
  const Batch batch = batch_for(*model);
  for (auto _ : state) {
    loop.step([&] { return batch; });
    clock.end();
    clock.resolve();
  }
  if (loop.failure()) std::rethrow_exception(loop.failure());
}

BENCHMARK(plain_step)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(harness_step)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardmark

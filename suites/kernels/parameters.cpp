// Benchmarks what parameters cost outside the model: drawing initial values, and one step of each optimizer
// on flat memory.
#include <benchmark/benchmark.h>

#include "executor/optim/optimizer.h"
#include "models/initial.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

void initial_values(benchmark::State& state) {
  const specs::ParameterSpec spec = {"weight", {state.range(0)}};
  for (auto _ : state) benchmark::DoNotOptimize(initial_value(spec, 1, at::kFloat));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(initial_values)->ArgName("elements")->Arg(1 << 20);

// Counts the bytes of parameters, gradients and state that are read, and of parameters and state that are
// written.
void step(benchmark::State& state, const std::string& name) {
  const auto& law = specs::optimizer_specs().at(name);
  const Choice choice = resolve({name}, law.options, "optimizer");
  const int64_t elements = state.range(0);
  const OptimizerShard shard = {at::ones({elements}), at::full({elements}, 1e-3)};
  const auto optimizer = make_optimizer(choice, {shard}, at::kCPU);
  for (auto _ : state) optimizer->step({});
  const int64_t passes = 3 + 2 * law.state_elements(choice.options);
  state.SetBytesProcessed(state.iterations() * elements * passes * int64_t{sizeof(float)});
}
void sgd_step(benchmark::State& state) { step(state, "sgd"); }
void adamw_step(benchmark::State& state) { step(state, "adamw"); }
BENCHMARK(sgd_step)->ArgName("elements")->Arg(1 << 14)->Arg(1 << 24);
BENCHMARK(adamw_step)->ArgName("elements")->Arg(1 << 14)->Arg(1 << 24);

}  // namespace
}  // namespace shardmark

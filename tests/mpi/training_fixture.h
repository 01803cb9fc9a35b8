// Runs a short training with any strategy on any communicator, and returns losses, gradient norms and
// parameters.
#pragma once

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "comm/communicator.h"
#include "data/loader.h"
#include "executor/executor.h"
#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark {

// Ranks on CPUs, with a communicator over all of them and one for each rank alone.
class OnCpuRanks : public ::testing::Test {
 protected:
  OnCpuRanks() {
    comm = make_communicator("pt2pt", world, at::kCPU);
    alone = comm->split(comm->rank(), 0);
    at::set_num_threads(1);
  }
  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm, alone;
};

struct Case {
  std::string model;  // a text such as "mlp(width=20)"
  std::string optimizer;
  at::ScalarType dtype = at::kDouble;
  int64_t batch_size = 2;  // samples per rank and micro-batch
  int64_t accumulation = 1;
  int64_t num_steps = 3;  // the first, one in steady state, and one after the optimizer had state
  std::optional<Precision> precision = {};  // if not set, everything is in dtype
  double clip_norm = 0;
  int64_t recompute = 0;
  bool gpu_forms = false;
  bool own_gathers = false;
  Kernels fused = {};  // nullptr: PyTorch's kernels
  // Whether fused kernels add to gradients and update in one pass; else autograd and the optimizer do.
  bool adds_gradients = true;
  bool graph = false;      // run steps as CUDA graphs
  int64_t norm_every = 1;  // number of steps
  Choice data = {"synthetic", {{"size", 64}}};
  Choice products = {"compute"};
};

struct Outcomes {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> initial, parameters, buffers;
  at::Tensor expert_load;  // summed over ranks and steps; undefined if there are no experts
};

inline Choice resolved_model(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, specs::model_spec(choice.name).options, "model");
}
inline Choice resolved_optimizer(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, specs::optimizer_specs().at(choice.name).options, "optimizer");
}
inline Choice resolved_strategy(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, strategies::strategy(choice.name).options, "strategy");
}

inline Choice resolved_products(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, specs::products_specs().at(choice.name).options, "products");
}

inline specs::ElementBytes bytes_of(const Precision& types) {
  const auto bytes = [](at::ScalarType type) { return static_cast<int64_t>(at::elementSize(type)); };
  return {bytes(types.compute), bytes(types.master), bytes(types.reduce)};
}

inline Programs programs_of(const StateContext& context, const std::string& strategy,
                            int64_t accumulation = 1, int64_t recompute = 0, bool own_gathers = false,
                            bool fused_update = false) {
  const Choice choice = resolved_strategy(strategy), &optimizer = context.optimizer;
  const specs::ModelTable table = context.model.table();
  strategies::StepInput input{table,
                              context.comm.size(),
                              accumulation,
                              bytes_of(context.types()),
                              specs::optimizer_specs().at(optimizer.name).state_elements(optimizer.options),
                              choice.options,
                              /*norm=*/false,
                              context.comm.rank(),
                              recompute};
  input.own_gathers = own_gathers;
  input.fused_update = fused_update;
  return programs_of(choice, input);
}

// Returns a state that is allocated but not published yet.
inline TrainingState make_state(const StateContext& context, const std::string& strategy) {
  Programs programs = programs_of(context, strategy);
  const auto process_groups = std::make_shared<const ProcessGroups>(context.comm, programs.process_groups());
  return {context, std::move(programs), process_groups};
}

struct Hooks {
  std::function<void(Programs&)> change;  // modifies the programs, to break them deliberately
  std::function<void()> made;             // called before the first step, when the state exists
  std::function<void()> begins = {};      // called immediately before the first step
};

// The ranks, batch and accumulation of the sampler follow from the communicator.
inline Outcomes train(const Case& c, const std::string& strategy, Communicator& comm,
                      const Hooks& hooks = {}) {
  const auto model =
      make_model(resolved_model(c.model), c.precision ? c.precision->compute : c.dtype, comm.device());
  model->gpu_forms |= c.gpu_forms;
  model->fused = c.fused;
  model->fp8 = fp8_of(c.products);
  if (c.fused) c.fused->adds_gradients = c.adds_gradients;
  const StateContext context{*model, comm, resolved_optimizer(c.optimizer), /*seed=*/7, c.precision};
  Programs programs = programs_of(context, strategy, c.accumulation, c.recompute, c.own_gathers,
                                  c.fused != nullptr && c.adds_gradients);
  if (hooks.change) hooks.change(programs);
  const auto process_groups = std::make_shared<const ProcessGroups>(comm, programs.process_groups());
  TrainingState state(context, std::move(programs), process_groups);
  state.publish();
  if (hooks.made) hooks.made();
  Outcomes outcomes;
  const auto keep = [&](std::map<std::string, at::Tensor>& into) {
    return [&](const std::string& name, const at::Tensor& value) {
      if (!model->buffers().contains(name)) into[name] = value;
    };
  };
  state.visit(State::weights, keep(outcomes.initial));

  const auto source = make_source(c.data, {model->table().sample, model->dtype(), 7});
  Loader loader(*source,
                DistributedSampler(source->size(), comm.size(), comm.rank(), c.batch_size, c.accumulation, 7),
                comm.device(), /*depth=*/0);
  GradientGuard guard(c.clip_norm, c.precision && c.precision->compute == at::kHalf, comm.device());
  Executor executor(state, guard, /*seed=*/7);
  if (c.graph) executor.use_graphs();
  if (hooks.begins) hooks.begins();
  for (int64_t step = 0; step < c.num_steps; ++step) {
    const bool wants_norm = step % c.norm_every == 0;
    const auto [loss, norm] = executor.step([&] { return loader.next(); }, wants_norm);
    if (executor.failure()) std::rethrow_exception(executor.failure());
    if (wants_norm) outcomes.norms.push_back(norm.item<double>());
    const at::Tensor sum = loss.to(at::kDouble).view({1});
    comm.all_reduce(sum, ReduceOp::sum).wait();
    outcomes.losses.push_back(sum.item<double>() / comm.size());
  }
  state.visit(State::weights, keep(outcomes.parameters));
  outcomes.buffers = model->buffers();
  if (model->expert_load.defined()) {
    outcomes.expert_load = model->expert_load.to(at::kDouble);
    comm.all_reduce(outcomes.expert_load.view(-1), ReduceOp::sum).wait();
  }
  return outcomes;
}

// Runs the reference: `single` on one rank, with the whole global batch as one micro-batch; or, because those
// of fp8 have scales of their own, with the same micro-batches. Many layouts and strategies have the same
// reference, and it is most of the work, because every rank computes all of it. So it is trained once in a
// process.
inline const Outcomes& train_single(Case c, Communicator& alone, int64_t ranks) {
  if (c.products.name == "fp8") {
    c.accumulation *= ranks;
  } else {
    c.batch_size *= ranks * c.accumulation;
    c.accumulation = 1;
  }
  static std::map<std::string, Outcomes> trained;
  const std::string key = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", alone.device().str(), c.model,
      c.optimizer, to_text(c.data), to_text(c.products), c.accumulation, static_cast<int>(c.dtype),
      c.precision ? static_cast<int>(c.precision->compute) : -1,
      c.precision ? static_cast<int>(c.precision->master) : -1,
      c.precision ? static_cast<int>(c.precision->reduce) : -1, c.batch_size, c.num_steps, c.clip_norm,
      c.recompute, c.gpu_forms, c.own_gathers, c.norm_every, c.fused != nullptr, c.adds_gradients, c.graph);
  const auto found = trained.find(key);
  return found == trained.end() ? trained[key] = train(c, "single", alone) : found->second;
}

// Returns || p - p_single || / || p_single - p_0 ||.
inline double parameter_error(const Outcomes& run, const Outcomes& single) {
  double error = 0, moved = 0;
  for (const auto& [name, value] : single.parameters) {
    error += (run.parameters.at(name) - value).to(at::kDouble).square().sum().item<double>();
    moved += (value - single.initial.at(name)).to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(error / moved);
}

inline double largest_relative(const std::vector<double>& values, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(values[i] - expected[i]) / std::abs(expected[i]));
  return largest;
}

inline void expect_equals_single(const Case& c, const std::string& strategy, Communicator& comm,
                                 const Outcomes& single, double tolerance) {
  SCOPED_TRACE(c.model + " " + strategy + " " + c.optimizer + " accumulation " +
               std::to_string(c.accumulation));
  const Outcomes run = train(c, strategy, comm);
  if (single.expert_load.defined()) {
    EXPECT_TRUE(run.expert_load.equal(single.expert_load)) << "other experts were chosen";
  }
  EXPECT_LE(largest_relative(run.losses, single.losses), tolerance);
  EXPECT_LE(largest_relative(run.norms, single.norms), tolerance);
  EXPECT_LE(parameter_error(run, single), tolerance);
}

}  // namespace shardmark

// Trains a point whose model copies are divided among several ranks, and the same training on one rank.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "executor/training_setup.h"
#include "sweep/measure.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {

inline const std::string kLayoutOptimizer = "adamw(lr=0.001, eps=1e-5, weight_decay=0.1)";

struct Layout {
  std::string model;
  std::string strategy = "ddp";
  int64_t pipeline = 1;
  std::string schedule = "1f1b";
  int64_t accumulation = 4;
  std::string optimizer = kLayoutOptimizer;
  std::string precision = "fp64";
  int64_t recompute = 0;
  double clip_norm = 0;
  std::string rank_order = "dp-pp";
  std::string stages = "flops";
  int64_t tensor = 1;
  bool sequence_parallel = false;
  int64_t context = 1;
  int64_t expert = 1;
  int64_t dispatch = kDispatchCopies;
  std::string products = "compute";
};

inline Point point_of(const Layout& layout, int64_t ranks) {
  Point point;
  point.workload = "training";
  point.ranks = ranks;
  point.seed = 7;
  TrainingPoint& t = point.training;
  t.model = resolved_model(layout.model);
  t.data = {"synthetic", {{"size", 64}}};
  t.strategy = resolved_strategy(layout.strategy);
  t.optimizer = resolved_optimizer(layout.optimizer);
  t.precision = layout.precision;
  t.batch_size = 2;
  t.accumulation = layout.accumulation;
  t.pipeline = layout.pipeline;
  const Choice schedule = choice_from_text(layout.schedule);
  t.schedule = resolve(schedule, strategies::pipeline_schedule(schedule.name).options, "pipeline schedule");
  t.recompute = layout.recompute;
  t.clip_norm = layout.clip_norm;
  t.rank_order = layout.rank_order;
  t.stages = layout.stages;
  t.tensor = layout.tensor;
  t.sequence_parallel = layout.sequence_parallel;
  t.context = layout.context;
  t.expert = layout.expert;
  t.dispatch = layout.dispatch;
  t.products = resolved_products(layout.products);
  return point;
}

// A training before its first step, on data like those of the others here. `point` must outlive it.
struct ReadyTraining {
  ReadyTraining(const Point& point, Communicator& comm) : setup(point, comm) {
    setup.allocate();
    setup.state->publish();
    source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
    loader.emplace(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm.device(), 0);
  }
  auto step(bool wants_norm = false) {
    return setup.executor->step([&] { return loader->next(); }, wants_norm);
  }

  TrainingSetup setup;
  std::unique_ptr<DataSource> source;
  std::optional<Loader> loader;
};

// A mistake that is planted in a training, to see whether it would be found.
struct Mistake {
  std::function<void(TrainingSetup&)> in_programs = [](TrainingSetup&) {};
  std::function<void(Model&)> in_model = [](Model&) {};
};

inline Outcomes train_layout(const Layout& layout, Communicator& comm, int64_t num_steps = 3,
                             const Mistake& mistake = {}) {
  const Point point = point_of(layout, comm.size());
  EXPECT_EQ(strategies::layout_impossible(point), "");
  TrainingSetup setup(point, comm);
  mistake.in_programs(setup);
  setup.allocate();
  mistake.in_model(*setup.model);
  setup.state->publish();
  Outcomes outcomes;
  const auto keep = [&](std::map<std::string, at::Tensor>& into) {
    return [&](const std::string& name, const at::Tensor& value) { into[name] = value; };
  };
  setup.state->visit(State::weights, keep(outcomes.initial));
  const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
  Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm.device(), 0);
  for (int64_t step = 0; step < num_steps; ++step) {
    const auto [loss, norm] = setup.executor->step([&] { return loader.next(); }, /*wants_norm=*/true);
    if (setup.executor->failure()) std::rethrow_exception(setup.executor->failure());
    outcomes.norms.push_back(norm.item<double>());
    const at::Tensor sum = loss.to(at::kDouble).view({1});
    comm.all_reduce(sum, ReduceOp::sum).wait();
    outcomes.losses.push_back(sum.item<double>() / comm.size());
  }
  setup.state->visit(State::weights, keep(outcomes.parameters));
  if (setup.model->expert_load.defined()) {
    outcomes.expert_load = setup.model->expert_load.to(at::kDouble);
    comm.all_reduce(outcomes.expert_load.view(-1), ReduceOp::sum).wait();
  }
  return outcomes;
}

// A point of a sweep, which proves itself.
inline Record measured(const Layout& layout, const HostGroup& world, Communicator& comm) {
  Point point = point_of(layout, comm.size());
  point.sampling.warmup_steps = point.sampling.min_steps = point.sampling.max_steps = 1;
  const Resources resources;
  static ReferenceCache references;  // on rank 0, of all points of the same model and precision
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  return measure_point({point, world, comm, resources, references, heartbeat});
}

class Layouts : public OnCpuRanks {
 protected:
  const Outcomes& single_of(const Layout& layout, int64_t data_ranks) {
    Case c{layout.model, layout.optimizer, layout.precision == "fp64" ? at::kDouble : at::kFloat};
    c.accumulation = layout.accumulation;
    c.num_steps = 3;
    c.clip_norm = layout.clip_norm;
    c.batch_size = 2;
    c.products = resolved_products(layout.products);
    return train_single(c, *alone, data_ranks);
  }

  void expect_equal(const Layout& layout, double tolerance = 1e-10) {
    const Point point = point_of(layout, comm->size());
    SCOPED_TRACE(to_text(point));
    const Outcomes& single = single_of(layout, point.data_ranks());
    const Outcomes run = train_layout(layout, *comm);
    for (const auto& [name, value] : single.initial) EXPECT_TRUE(run.initial.at(name).equal(value)) << name;
    if (single.expert_load.defined()) {
      EXPECT_TRUE(run.expert_load.equal(single.expert_load)) << "other experts were chosen";
    }
    EXPECT_LE(largest_relative(run.losses, single.losses), tolerance);
    EXPECT_LE(largest_relative(run.norms, single.norms), tolerance);
    EXPECT_LE(parameter_error(run, single), tolerance);
    expect_same_bits(run);
  }

  void expect_equal_clipped_recomputed_and_in_fp32(Layout layout) {
    layout.clip_norm = 0.1;
    expect_equal(layout, 1e-7);
    layout.recompute = 1;
    expect_equal(layout, 1e-7);
    layout.clip_norm = 0;
    layout.precision = "fp32";
    expect_equal(layout, 1e-5);
  }

  // Checks that parameters which several ranks share, such as the norms of tensor-parallel blocks, are
  // bitwise equal.
  void expect_same_bits(const Outcomes& run) {
    for (const auto& [name, value] : run.parameters) {
      const at::Tensor most = value.contiguous().clone();
      comm->all_reduce(most.view(-1), ReduceOp::max).wait();
      EXPECT_TRUE(most.equal(value)) << name;
    }
  }
};

inline const std::vector<std::string> kSchedules = {"1f1b", "gpipe", "interleaved(chunks=2)", "zero_bubble",
                                                    "zero_bubble_v"};
inline bool has_two_chunks(const std::string& schedule) {
  return schedule == "interleaved(chunks=2)" || schedule == "zero_bubble_v";
}

}  // namespace shardmark

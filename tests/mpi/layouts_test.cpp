// If the copies of a model are divided among several ranks, training equals that on one device in every
// layout: losses, gradient norms, initial values and parameters.
// RANKS 2 4
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

const std::string kGpt2 = "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)",
                  kMlp = "mlp(features=13, width=19, layers=5, classes=5)",
                  kTied =
                      "llama(layers=3, width=24, heads=6, kv_heads=2, inner=20, sequence=11, vocabulary=37, "
                      "tied=true)",
                  kLlama =
                      "llama(layers=3, width=24, heads=6, kv_heads=2, inner=20, sequence=11, "
                      "vocabulary=37, tied=false)",
                  kResNet = "resnet(layers=20, width=3, image=9, batch_norm=frozen)",
                  kMoe =
                      "moe(layers=3, width=24, heads=2, kv_heads=1, inner=20, sequence=11, vocabulary=37, "
                      "experts=3, top_k=2)";

TEST_F(Layouts, PipelinesEqualSingle) {
  for (int64_t stages = 2; stages <= comm->size(); stages *= 2)
    for (const std::string& model : {kGpt2, kMlp, kTied, kLlama, kResNet, kMoe})
      for (const std::string& schedule : kSchedules) {
        if (stages == 4 && has_two_chunks(schedule) && model != kResNet) continue;  // too few blocks
        expect_equal({.model = model, .pipeline = stages, .schedule = schedule});
      }
}

// Stages without the head also contribute auxiliary losses. The reference computes them for each micro-batch
// separately, too.
TEST_F(Layouts, AuxiliaryLossesOfPipelinesEqualSingle) {
  if (comm->size() != 2) GTEST_SKIP() << "one copy on 2 ranks";
  const std::string model = kMoe.substr(0, kMoe.size() - 1) + ", aux_loss=0.1)";
  Case c{model, kLayoutOptimizer};
  c.accumulation = 4;
  c.num_steps = 3;
  const Outcomes alone_run = train(c, "single", *alone);
  for (const std::string& schedule : kSchedules)
    for (const int64_t recompute : {0, 1}) {
      const Layout layout{.model = model, .pipeline = 2, .schedule = schedule, .recompute = recompute};
      SCOPED_TRACE(to_text(point_of(layout, 2)));
      const Outcomes run = train_layout(layout, *comm);
      EXPECT_LE(largest_relative(run.losses, alone_run.losses), 1e-10);
      EXPECT_LE(largest_relative(run.norms, alone_run.norms), 1e-10);
      EXPECT_LE(parameter_error(run, alone_run), 1e-10);
    }
}

TEST_F(Layouts, PipelinesOfEveryStrategyEqualSingle) {
  for (const std::string& strategy : all_strategies(comm->size() / 2))
    if (strategy != "auto")
      for (const std::string& schedule : kSchedules)
        expect_equal({.model = kGpt2, .strategy = strategy, .pipeline = 2, .schedule = schedule});
}

TEST_F(Layouts, StagesInsideDataAndByBlocks) {
  for (const std::string& strategy : kKinds)
    expect_equal(
        {.model = kGpt2, .strategy = strategy, .pipeline = 2, .rank_order = "pp-dp", .stages = "blocks"});
}

TEST_F(Layouts, OfAnyNumberOfMicroBatches) {
  for (const int64_t accumulation : {1, 3, 7})
    for (const std::string& schedule : kSchedules)
      for (const std::string strategy : {"ddp", "fsdp", "fsdp(shard=gradients)"})
        expect_equal({.model = kTied,
                      .strategy = strategy,
                      .pipeline = 2,
                      .schedule = schedule,
                      .accumulation = accumulation});
}

TEST_F(Layouts, InFp32AndClippedAndRecomputed) {
  for (const std::string& schedule : kSchedules)
    for (const std::string strategy : {"ddp", "fsdp", "zero3"})
      for (const std::string& optimizer : kOptimizers) {
        Layout layout{.model = kGpt2, .strategy = strategy, .pipeline = 2, .schedule = schedule};
        layout.optimizer = optimizer;
        expect_equal_clipped_recomputed_and_in_fp32(layout);
      }
}

// The random numbers of a micro-batch do not depend on where its blocks are. So with dropout, a pipeline
// equals the same copy on one rank, bit by bit if there is one copy.
TEST_F(Layouts, DropoutDrawsAsOnOneRank) {
  if (comm->size() != 2) GTEST_SKIP() << "one copy on 2 ranks";
  const std::string model = "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37, dropout=0.2)";
  Case c{model, kLayoutOptimizer};
  c.accumulation = 4;
  c.num_steps = 3;
  const Outcomes alone_run = train(c, "single", *alone);
  for (const std::string& schedule : kSchedules) {
    const Outcomes run = train_layout({.model = model, .pipeline = 2, .schedule = schedule}, *comm);
    EXPECT_LE(largest_relative(run.losses, alone_run.losses), 1e-12) << schedule;
    EXPECT_LE(largest_relative(run.norms, alone_run.norms), 1e-12) << schedule;
  }
}

// A state that one layout has written can be loaded in any other layout.
TEST_F(Layouts, StateGoesOnUnderAnother) {
  using Tensors = std::map<std::string, at::Tensor>;
  const auto run = [&](const Layout& layout, const Tensors* from, Tensors* to) {
    const Point point = point_of(layout, comm->size());
    TrainingSetup setup(point, *comm);
    setup.allocate();
    if (from != nullptr)
      setup.state->load(State::all, [&](const std::string& name) { return from->at(name); });
    else
      setup.state->publish();
    const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
    Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm->device(), 0);
    for (int step = 0; step < 2; ++step)
      setup.executor->step([&] { return loader.next(); }, /*wants_norm=*/true);
    setup.state->visit(State::all,
                       [&](const std::string& name, const at::Tensor& value) { (*to)[name] = value; });
  };
  const Layout first{.model = kTied, .pipeline = 2, .schedule = "zero_bubble"},
      there_and_back{.model = kTied, .strategy = "fsdp", .pipeline = 2, .schedule = "zero_bubble_v"};
  Tensors state;
  run(there_and_back, nullptr, &state);
  Tensors expected;
  run(first, &state, &expected);
  Tensors again;
  run(there_and_back, &state, &again);
  for (const auto& [name, value] : expected)
    EXPECT_LE((again.at(name) - value).abs().max().item<double>(), 1e-9) << name;
  for (const std::string strategy : {"fsdp", "zero3", "ddp"}) {
    Layout other{.model = kTied, .strategy = strategy, .pipeline = comm->size() / 2};
    other.accumulation =
        4 / (comm->size() / other.pipeline) * (comm->size() / 2);  // as many samples per step
    SCOPED_TRACE(strategy);
    Tensors other_state;
    run(other, &state, &other_state);
    EXPECT_EQ(other_state.size(), expected.size());
    for (const auto& [name, value] : expected)
      EXPECT_LE((other_state.at(name) - value).abs().max().item<double>(), 1e-9) << name;
  }
  // The same holds for tensor-parallel and context-parallel layouts, in both directions.
  for (const bool is_context : {false, true}) {
    Layout split{.model = kTied, .strategy = "fsdp"};
    split.model =
        "llama(layers=3, width=24, heads=6, kv_heads=2, inner=20, sequence=12, vocabulary=37, tied=true)";
    Layout whole = split;
    whole.pipeline = 2;
    (is_context ? split.context : split.tensor) = 2;
    split.sequence_parallel = !is_context;
    for (const auto& [from, to] : {std::pair(split, whole), std::pair(whole, split)}) {
      Tensors start, here, there;
      run(from, nullptr, &start);
      run(from, &start, &here);
      run(to, &start, &there);
      EXPECT_EQ(here.size(), there.size());
      for (const auto& [name, value] : here)
        EXPECT_LE((there.at(name) - value).abs().max().item<double>(), 1e-9) << name;
    }
  }
}

}  // namespace
}  // namespace shardmark

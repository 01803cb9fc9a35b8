// If ranks share the experts of a mixture, training equals that on one device: choices of experts, losses,
// gradient norms and parameters. What travels is what the choices say, and a rank that fails leaves none
// waiting.
// RANKS 2 4
#include <gmock/gmock.h>

#include "models/dispatch.h"
#include "sweep/measure.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

const std::string kShape = "layers=3, width=24, heads=2, kv_heads=1, inner=20, sequence=11, vocabulary=37",
                  kFourExperts = "moe(" + kShape + ", experts=4, top_k=2)",
                  kEightExperts = "moe(" + kShape + ", experts=8, top_k=1, shared_inner=12)";

constexpr int64_t kModelWidth = 24;

class ExpertLayouts : public Layouts {};

TEST_F(ExpertLayouts, EqualSingle) {
  for (int64_t expert = 2; expert <= comm->size(); expert *= 2)
    for (const std::string& model : {kFourExperts, kEightExperts})
      for (const int64_t accumulation : {1, 3})
        expect_equal({.model = model, .accumulation = accumulation, .expert = expert});
}

// Once to each rank, and with four ranks once to each pair of them, as to nodes of two.
std::vector<int64_t> dispatches_of(int64_t expert) {
  return expert == 4 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
}

TEST_F(ExpertLayouts, OfTokensThatTravelOnceEqualSingle) {
  const std::string twelve = "moe(" + kShape + ", experts=12, top_k=5)";
  for (int64_t expert = 2; expert <= comm->size(); expert *= 2)
    for (const int64_t dispatch : dispatches_of(expert)) {
      for (const std::string& model : {kFourExperts, kEightExperts, twelve})
        for (const std::string strategy : {"ddp", "fsdp", "zero3"})
          expect_equal({.model = model,
                        .strategy = strategy,
                        .accumulation = 2,
                        .recompute = strategy == "fsdp" ? 1 : 0,
                        .expert = expert,
                        .dispatch = dispatch});
      for (const std::string routing : {"balanced", "zipf(exponent=1.5)", "hot", "hot(experts=2, share=0)",
                                        "hot(experts=2, share=1, moves=true)"})
        expect_equal({.model = "moe(" + kShape + ", experts=4, top_k=2, routing=" + routing + ")",
                      .accumulation = 2,
                      .expert = expert,
                      .dispatch = dispatch});
      expect_equal({.model = "moe(layers=2, width=24, heads=2, kv_heads=1, inner=20, sequence=16, "
                             "vocabulary=37, experts=8, top_k=3)",
                    .context = 2,
                    .expert = expert,
                    .dispatch = dispatch});
      expect_equal({.model = "moe(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=16, "
                             "vocabulary=37, experts=8, top_k=3)",
                    .strategy = "fsdp",
                    .tensor = 2,
                    .sequence_parallel = true,
                    .expert = expert,
                    .dispatch = dispatch});
      expect_equal_clipped_recomputed_and_in_fp32({.model = twelve, .expert = expert, .dispatch = dispatch});
    }
  if (comm->size() == 4)
    for (const std::string& schedule : kSchedules)
      expect_equal({.model = twelve, .pipeline = 2, .schedule = schedule, .expert = 2, .dispatch = 1});
}

// With `group`, fewer ranks shard a copy of the model than share experts, as many, or more.
const std::vector<std::string> kSharded = {"fsdp(shard=optimizer)",
                                           "fsdp(shard=optimizer, layout=dim0)",
                                           "fsdp(shard=optimizer, offload=optimizer)",
                                           "fsdp(shard=optimizer, group=2)",
                                           "fsdp(shard=gradients)",
                                           "fsdp(shard=gradients, group=1)",
                                           "fsdp",
                                           "fsdp(prefetch=0)",
                                           "fsdp(prefetch=3, layout=dim0)",
                                           "fsdp(group=2)",
                                           "fsdp(group=1, offload=optimizer)",
                                           "zero3",
                                           "zero3(evenness=count, prefetch=2)",
                                           "zero3(persistence=600)",
                                           "hpz",
                                           "hpz(group=2)",
                                           "hpz(group=1, prefetch=2)"};

TEST_F(ExpertLayouts, ShardedEqualSingle) {
  for (const std::string& strategy : kSharded)
    for (int64_t expert = 2; expert <= comm->size(); expert *= 2) {
      expect_equal({.model = kFourExperts, .strategy = strategy, .accumulation = 3, .expert = expert});
      expect_equal({.model = kFourExperts,
                    .strategy = strategy,
                    .accumulation = 1,
                    .recompute = 1,
                    .clip_norm = 0.1,
                    .expert = expert},
                   1e-7);
    }
}

TEST_F(ExpertLayouts, ShardedInPipelinesEqualSingle) {
  if (comm->size() < 4) GTEST_SKIP() << "needs four ranks";
  for (const std::string strategy : {"fsdp(shard=optimizer)", "fsdp", "zero3(persistence=600)", "hpz"})
    for (const std::string& schedule : kSchedules)
      expect_equal({.model = kFourExperts,
                    .strategy = strategy,
                    .pipeline = 2,
                    .schedule = schedule,
                    .rank_order = "pp-dp",
                    .expert = 2});
}

// Ranks share sequences and experts: each gives its own tokens to experts of all ranks, or of some.
TEST_F(ExpertLayouts, OfContextRanksEqualSingle) {
  for (const std::string routing : {"learned", "zipf", "hot(experts=2, share=0)"}) {
    const std::string model =
        "moe(layers=2, width=24, heads=2, kv_heads=1, inner=20, sequence=16, vocabulary=37, experts=4, "
        "routing=" +
        routing + ")";
    for (int64_t context = 2; context <= comm->size(); context *= 2)
      for (int64_t expert = 1; expert <= comm->size(); expert *= 2)
        for (const std::string strategy : {"ddp", "fsdp", "zero3"})
          expect_equal({.model = model,
                        .strategy = strategy,
                        .accumulation = 2,
                        .recompute = 1,
                        .context = context,
                        .expert = expert});
  }
  if (comm->size() == 4)
    for (const std::string& schedule : kSchedules)
      expect_equal({.model = "moe(layers=3, width=24, heads=2, kv_heads=1, inner=20, sequence=16, "
                             "vocabulary=37, experts=4)",
                    .pipeline = 2,
                    .schedule = schedule,
                    .context = 2,
                    .expert = 2});
}

// Tensor ranks have tokens of their own, and whole experts. Those of several copies may share them, too.
TEST_F(ExpertLayouts, OfTensorRanksEqualSingle) {
  const std::string shape =
      "moe(layers=3, width=24, heads=4, kv_heads=2, inner=20, sequence=16, vocabulary=37";
  for (const std::string options :
       {", experts=4, top_k=2)", ", experts=8, top_k=1, shared_inner=12, tied=false)",
        ", experts=4, top_k=2, routing=zipf(exponent=1))"})
    for (int64_t expert = 2; expert <= comm->size(); expert *= 2)
      for (const std::string strategy : {"ddp", "fsdp", "fsdp(shard=optimizer)", "zero3", "hpz"})
        for (const int64_t recompute : {int64_t{0}, int64_t{1}, kGatheredInputs}) {
          if (recompute != 0 && strategy != "ddp" && strategy != "fsdp") continue;
          expect_equal({.model = shape + options,
                        .strategy = strategy,
                        .accumulation = 2,
                        .recompute = recompute,
                        .tensor = 2,
                        .sequence_parallel = true,
                        .expert = expert});
        }
  if (comm->size() == 2)
    expect_equal({.model = shape + ", experts=4, top_k=2)",
                  .strategy = "single",
                  .tensor = 2,
                  .sequence_parallel = true,
                  .expert = 2});
  if (comm->size() == 4) {
    for (const std::string& schedule : kSchedules)
      for (const std::string order : {"dp-pp", "pp-dp"})
        expect_equal({.model = shape + ", experts=4, tied=false)",
                      .pipeline = 2,
                      .schedule = schedule,
                      .rank_order = order,
                      .tensor = 2,
                      .sequence_parallel = true,
                      .expert = 2});
    expect_equal({.model = shape + ", experts=4)",
                  .strategy = "zero3",
                  .tensor = 2,
                  .sequence_parallel = true,
                  .context = 2,
                  .expert = 4});
    expect_equal({.model = "moe(layers=2, width=24, heads=4, kv_heads=4, inner=18, sequence=16, "
                           "vocabulary=37, experts=4)",
                  .tensor = 4,
                  .sequence_parallel = true,
                  .expert = 4});
  }
}

TEST_F(ExpertLayouts, OfTensorRanksClippedRecomputedAndInFloatEqualSingle) {
  expect_equal_clipped_recomputed_and_in_fp32(
      {.model =
           "moe(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=16, vocabulary=37, experts=4)",
       .strategy = "fsdp",
       .tensor = 2,
       .sequence_parallel = true,
       .expert = comm->size()});
}

// Where a rule gives tokens to experts, the loads are known: all on one expert of two, none on those of one
// rank, and those of another rank in each step.
TEST_F(ExpertLayouts, RoutedByARuleEqualSingle) {
  const auto model = [](const std::string& routing) {
    return "moe(" + kShape + ", experts=4, top_k=2, routing=" + routing + ")";
  };
  for (const std::string routing : {"balanced", "zipf(exponent=1.5)", "hot", "hot(experts=2, share=0)",
                                    "hot(experts=2, share=1, moves=true)"})
    for (int64_t expert = 2; expert <= comm->size(); expert *= 2)
      for (const std::string strategy : {"ddp", "fsdp"})
        expect_equal({.model = model(routing),
                      .strategy = strategy,
                      .accumulation = 2,
                      .recompute = 1,
                      .expert = expert});
  const auto load_of = [&](const std::string& routing) {
    const Outcomes run =
        train_layout({.model = model(routing), .accumulation = 1, .expert = comm->size()}, *comm, 2);
    return std::vector<double>(run.expert_load[2].data_ptr<double>(),
                               run.expert_load[2].data_ptr<double>() + 4);
  };
  const double tokens = 2 * 2 * 11 * comm->size();  // 2 steps of 2 samples of 11 tokens on each rank
  EXPECT_THAT(load_of("hot(experts=2, share=0)"), testing::ElementsAre(0, 0, tokens, tokens));
  EXPECT_THAT(load_of("hot(experts=2, share=1, moves=true)"),
              testing::ElementsAre(tokens / 2, tokens / 2, tokens / 2, tokens / 2));
  EXPECT_THAT(load_of("hot"), testing::ElementsAre(tokens, testing::Lt(tokens / 2), testing::Lt(tokens / 2),
                                                   testing::Lt(tokens / 2)));
}

// Stages have experts of their own; with 4 ranks, two share those of each stage.
TEST_F(ExpertLayouts, OfPipelinesEqualSingle) {
  if (comm->size() < 4) GTEST_SKIP() << "needs four ranks";
  for (const std::string order : {"dp-pp", "pp-dp"})
    for (const std::string& schedule : kSchedules)
      for (const int64_t recompute : {0, 1})
        expect_equal({.model = kFourExperts,
                      .pipeline = 2,
                      .schedule = schedule,
                      .recompute = recompute,
                      .rank_order = order,
                      .expert = 2});
}

TEST_F(ExpertLayouts, ClippedRecomputedAndInFloatEqualSingle) {
  expect_equal_clipped_recomputed_and_in_fp32({.model = kFourExperts, .expert = 2});
}

// Small buckets: several of either kind, which are reduced over different ranks.
TEST_F(ExpertLayouts, OfSmallBucketsEqualSingle) {
  expect_equal(
      {.model = kFourExperts, .strategy = "ddp(bucket_mb=0.02, first_bucket_mb=0.001)", .expert = 2});
}

// The whole state goes through one rank: it is the same whichever ranks share the experts.
TEST_F(ExpertLayouts, ReadEachOthersState) {
  std::map<std::string, at::Tensor> states[5];
  for (const auto& [number, expert, strategy] :
       {std::tuple{0, 2, "fsdp"}, {1, 1, "ddp"}, {2, 2, "zero3"}, {3, 2, "ddp"}, {4, 2, "fsdp(group=1)"}}) {
    const Point point = point_of(
        {.model = kFourExperts, .strategy = strategy, .accumulation = 1, .expert = expert}, comm->size());
    ReadyTraining training(point, *comm);
    const TrainingSetup& setup = training.setup;
    if (number > 0) {
      const StateReader read = [&](const std::string& name) { return states[number - 1].at(name); };
      setup.state->load(State::all, comm->rank() == 0 ? read : StateReader{});
    } else {
      for (int step = 0; step < 2; ++step) training.step();
    }
    setup.state->visit(State::all, [&, &state = states[number]](const std::string& name, const auto& value) {
      state[name] = value;
    });
  }
  EXPECT_EQ(states[0].size(), 97) << "32 parameters, two moments of each, and the number of updates";
  for (const auto& [name, value] : states[0])
    for (size_t other = 1; other < std::size(states); ++other)
      EXPECT_TRUE(states[other].at(name).equal(value)) << name << " of " << other;
}

// Also if tensor ranks share them, or have a part of each.
TEST_F(ExpertLayouts, OfTensorRanksReadEachOthersState) {
  const std::string model =
      "moe(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=16, vocabulary=37, experts=4)";
  std::map<std::string, at::Tensor> states[4];
  const Layout layouts[] = {
      {.model = model, .strategy = "fsdp", .tensor = 2, .sequence_parallel = true, .expert = comm->size()},
      {.model = model, .tensor = 2},
      {.model = model, .strategy = "zero3", .tensor = 2, .sequence_parallel = true, .expert = 2},
      {.model = model, .expert = 2}};
  for (size_t number = 0; number < std::size(layouts); ++number) {
    const Point point = point_of(layouts[number], comm->size());
    ReadyTraining training(point, *comm);
    const StateReader read = [&](const std::string& name) { return states[number - 1].at(name); };
    if (number > 0)
      training.setup.state->load(State::all, comm->rank() == 0 ? read : StateReader{});
    else
      training.step();
    training.setup.state->visit(
        State::all, [&](const std::string& name, const auto& value) { states[number][name] = value; });
  }
  EXPECT_GT(states[0].size(), 60u);
  for (const auto& [name, value] : states[0])
    for (const auto& other : states) EXPECT_TRUE(other.at(name).equal(value)) << name;
}

// A point of a sweep proves itself, with the auxiliary loss of each rank's micro-batches.
TEST_F(ExpertLayouts, AreVerifiedByASweep) {
  for (const auto& [dispatch, precision] : {std::pair(1, "bf16"), {1, "fp16"}, {1, "fp32"}, {2, "bf16"}}) {
    if (dispatch == 2 && comm->size() < 4) continue;
    const Record record = measured({.model = "moe(" + kShape + ", experts=12, top_k=5, aux_loss=0.5)",
                                    .accumulation = 2,
                                    .precision = precision,
                                    .expert = dispatch == 2 ? 4 : 2,
                                    .dispatch = dispatch},
                                   world, *comm);
    EXPECT_EQ(record.outcome, Outcome::ok) << precision << ": " << record.reason;
    EXPECT_THAT(record.measures.verified, testing::StartsWith("equal to one device")) << precision;
  }
  for (const std::string& model :
       {"moe(" + kShape + ", experts=4, top_k=2, aux_loss=0.5)",
        "moe(" + kShape + ", experts=4, top_k=2, aux_loss=0.5, capacity=0.75)", kEightExperts})
    for (const auto& [strategy, precision] : {std::pair("ddp", "fp32"),
                                              {"ddp", "fp64"},
                                              {"ddp", "bf16"},
                                              {"ddp", "fp16"},
                                              {"fsdp(shard=optimizer)", "fp32"},
                                              {"fsdp(shard=optimizer)", "fp16"},
                                              {"fsdp", "fp32"},
                                              {"fsdp", "bf16"},
                                              {"fsdp(group=1)", "fp16"},
                                              {"zero3", "bf16"},
                                              {"hpz(group=2)", "fp16"}}) {
      const Record record = measured(
          {.model = model, .strategy = strategy, .accumulation = 2, .precision = precision, .expert = 2},
          world, *comm);
      EXPECT_EQ(record.outcome, Outcome::ok) << precision << ": " << record.reason;
      EXPECT_THAT(record.measures.verified, testing::StartsWith("equal to one device")) << precision;
      if (world.rank() == 0) {
        EXPECT_GT(record.measures.exposed_expert_s, 0);
      }
    }
}

// Rows that leave their rank: those of tokens whose expert is elsewhere. A copy takes its width and one
// weight one way and its width the other, in forward as in backward. The other bytes are those of the
// program: the counts, and the gradients of experts over fewer ranks than all others.
TEST_F(ExpertLayouts, MoveWhatTheChoicesSay) {
  constexpr int64_t kBytes = 8, kSteps = 2;
  for (const auto& [strategy, expert] : {std::pair("ddp", 2),
                                         {"ddp", comm->size()},
                                         {"fsdp", 2},
                                         {"fsdp(group=2)", comm->size()},
                                         {"zero3", 2},
                                         {"hpz(group=1)", 2}}) {
    const Layout layout{.model = kFourExperts, .strategy = strategy, .accumulation = 2, .expert = expert};
    const Point point = point_of(layout, comm->size());
    ReadyTraining training(point, *comm);
    const TrainingSetup& setup = training.setup;
    comm->reset_traffic();
    for (int64_t step = 0; step < kSteps; ++step) training.step();

    const at::Tensor load =
        setup.model->expert_load.view({3, expert, -1}).sum(at::IntArrayRef{0, 2});  // by rank
    const int64_t index = specs::mesh_of(point).expert_group().index_of(comm->rank());
    const auto leaving = (load.sum() - load[index]).item<double>();
    double of_rows = 0, of_others = 0;
    for (const strategies::CollectiveCall& call : setup.state->program().calls) {
      const bool has_rows = call.inside_block && call.inside_block->row > 0;
      (has_rows ? of_rows : of_others) += call.ring_bytes();
    }
    // What is sent is not what is received: the sum over all ranks is what left somewhere.
    const double moved = world.sum(comm->traffic().ring_bytes - kSteps * of_others);
    EXPECT_DOUBLE_EQ(moved, world.sum(leaving) * 2 * (2 * kModelWidth + 1) * kBytes);
    // Planned as if experts were chosen evenly: 3 layers, 2 micro-batches of 2 samples of 11 tokens, 2
    // experts.
    const double copies = 3 * 2 * 2 * 11 * 2, share = static_cast<double>(expert - 1) / expert;
    EXPECT_DOUBLE_EQ(of_rows, copies * 2 * (2 * kModelWidth + 1) * kBytes * share);
  }
}

// Each row that leaves a rank is a token and its weights for the receiver's experts. Where a rule routes
// tokens, what is planned is what moves, as the mean over ranks, to the byte.
TEST_F(ExpertLayouts, OfTokensThatTravelOnceMoveWhatTheRulesSay) {
  for (const std::string routing : {"balanced", "zipf(exponent=1)", "hot(experts=2, share=0.5)"})
    for (int64_t expert = 2; expert <= comm->size(); expert *= 2)
      for (const int64_t dispatch : dispatches_of(expert)) {
        SCOPED_TRACE(fmt::format("{}, expert {}, dispatch {}", routing, expert, dispatch));
        const Layout layout{.model = "moe(" + kShape + ", experts=8, top_k=3, routing=" + routing + ")",
                            .accumulation = 2,
                            .expert = expert,
                            .dispatch = dispatch};
        const Point point = point_of(layout, comm->size());
        ReadyTraining training(point, *comm);
        comm->reset_traffic();
        training.step();
        double planned = 0, of_tokens = 0;
        int64_t of_copies = 0;
        for (const strategies::CollectiveCall& call : training.setup.state->program().calls) {
          planned += call.ring_bytes();
          if (!call.inside_block || call.inside_block->row == 0) continue;
          of_tokens += call.ring_bytes();
          of_copies += 3 * 2 * 11;
        }
        EXPECT_DOUBLE_EQ(world.sum(comm->traffic().ring_bytes), world.sum(planned));
        if (dispatch == 1) {
          const double share = static_cast<double>(expert - 1) / static_cast<double>(expert);
          EXPECT_LT(of_tokens, share * static_cast<double>(of_copies) * kModelWidth * 8)
              << "fewer than copies";
        }
      }
}

// With a capacity, every rank sends the same, and no counts before. Without drops, the results are those
// without a capacity.
TEST_F(ExpertLayouts, WithACapacityMoveAsMuchWhateverIsChosen) {
  const auto model = [](const std::string& options) {
    return "moe(" + kShape + ", experts=4, top_k=2, " + options + ")";
  };
  for (int64_t expert = 2; expert <= comm->size(); expert *= 2) {
    for (const std::string strategy : {"ddp", "fsdp"})
      for (const std::string options :
           {"capacity=1, routing=balanced", "capacity=2, routing=zipf", "capacity=4"})
        expect_equal({.model = model(options),
                      .strategy = strategy,
                      .accumulation = 2,
                      .recompute = 1,
                      .expert = expert});
    const Layout layout{.model = model("capacity=1.25"), .accumulation = 2, .expert = expert};
    const Point point = point_of(layout, comm->size());
    ReadyTraining training(point, *comm);
    const TrainingSetup& setup = training.setup;
    comm->reset_traffic();
    training.step();
    double of_experts = 0, of_all = 0;
    for (const strategies::CollectiveCall& call : setup.state->program().calls) {
      of_all += call.ring_bytes();
      if (call.dimension == specs::Dimension::expert) of_experts += call.ring_bytes();
    }
    EXPECT_DOUBLE_EQ(comm->traffic().ring_bytes, of_all);
    // 3 layers, 2 micro-batches of 2 samples, 4 experts that take 7 of each: 1.25 x 11 tokens x 2 / 4,
    // rounded up.
    const double rows = 3 * 2 * 2 * 4 * 7, share = static_cast<double>(expert - 1) / expert;
    EXPECT_DOUBLE_EQ(of_experts, rows * 2 * (2 * kModelWidth + 1) * 8 * share);
  }
}

// Experts, tokens and gradients of a layer that two or four ranks share, against each rank's own tokens with
// all experts. Logits: as they come, one expert that all tokens choose, experts of the last rank that nobody
// chooses, equal logits. With a capacity, the copies that an expert does not take have no weight on one
// device.
TEST_F(ExpertLayouts, RouteAsOneDeviceDoes) {
  constexpr int64_t kTokens = 13, kExperts = 8, kWidth = 24, kInner = 20;
  const int64_t ranks = comm->size(), own = kExperts / ranks;
  specs::Parts::Rows sent;
  bool returns = false;
  for (const int64_t dispatch : {kDispatchCopies, int64_t{1}}) {
    Point point = point_of({.model = kEightExperts, .expert = ranks, .dispatch = dispatch}, ranks);
    TrainingSetup setup(point, *comm);
    setup.allocate();
    Model& model = *setup.model;
    model.gather_counts = [&](const at::Tensor& counts, int64_t, int64_t) {
      const at::Tensor all = at::empty({ranks * counts.numel()}, counts.options());
      comm->all_gather(all, counts).wait();
      sent.assign(static_cast<size_t>(ranks), std::vector<int64_t>(static_cast<size_t>(ranks)));
      for (int64_t from = 0; from < ranks; ++from)
        for (int64_t to = 0; to < ranks; ++to)
          sent[static_cast<size_t>(from)][static_cast<size_t>(to)] =
              all.view({ranks, ranks, -1})[from][to].sum().item<int64_t>();
      std::vector<int64_t> found(all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel());
      return found;
    };
    model.start_collective = [&](specs::Dimension, specs::Collective what, const at::Tensor& out,
                                 const at::Tensor& in) {
      const auto nothing_to_wait_for = [] {};
      if (what == specs::Collective::all_to_all) {
        comm->run({.what = what, .out = out.view(-1), .in = in.view(-1)});
        return nothing_to_wait_for;
      }
      specs::Parts::Rows rows = sent;
      for (size_t from = 0; from < sent.size(); ++from)
        for (size_t to = 0; to < sent.size(); ++to)
          rows[from][to] = (returns ? sent[to][from] : sent[from][to]) * in.size(1);
      returns = !returns;
      comm->run({.what = what,
                 .out = out.view(-1),
                 .in = in.view(-1),
                 .parts = std::make_shared<specs::Parts>(rows)});
      return nothing_to_wait_for;
    };
    at::manual_seed(1);
    const auto weight = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble).mul_(0.3); };
    const at::Tensor all[] = {weight({kExperts, kInner, kWidth}), weight({kExperts, kInner, kWidth}),
                              weight({kExperts, kWidth, kInner})};
    for (const std::string routing : {"free", "one", "none on the last rank", "equal"})
      for (const auto& [top_k, capacity] : {std::pair(1, 0), {2, 0}, {1, 2}, {2, 3}, {2, 13}}) {
        if (dispatch != kDispatchCopies && capacity > 0) continue;
        SCOPED_TRACE(
            fmt::format("{}, top_k {}, capacity {}, dispatch {}", routing, top_k, capacity, dispatch));
        at::manual_seed(17 + comm->rank());
        const at::Tensor x = at::randn({kTokens, kWidth}, at::kDouble).requires_grad_(true);
        at::Tensor logits = at::randn({kTokens, kExperts}, at::kDouble);
        if (routing == "one") logits.select(1, kExperts / 2).add_(100);
        if (routing == "none on the last rank") logits.narrow(1, kExperts - own, own).sub_(100);
        if (routing == "equal") logits.zero_();
        logits.requires_grad_(true);
        const Routing routes = routed(logits, top_k);
        const at::Tensor counts = routes.ends.to(at::kLong).diff(1, 0, at::zeros({1}, at::kLong));

        at::Tensor is_taken = at::ones({kTokens * top_k}, at::kDouble);
        for (int64_t expert = 0; expert < kExperts; ++expert) {
          const auto end = routes.ends[expert].item<int64_t>(), begin = end - counts[expert].item<int64_t>();
          for (int64_t place = begin + capacity; capacity > 0 && place < end; ++place)
            is_taken[routes.order[place].item<int64_t>()] = 0;
        }
        const auto results = [&](bool over_ranks) {
          std::vector<at::Tensor> inputs = {x, logits};
          for (const at::Tensor& whole : all) {
            const at::Tensor part = over_ranks ? whole.narrow(0, comm->rank() * own, own) : whole;
            inputs.push_back(part.clone().requires_grad_(true));
          }
          Routing taken = routes;
          taken.weights = routes.weights * is_taken.view({-1, top_k});
          const at::Tensor y = over_ranks ? experts_over_ranks(x, inputs[2], inputs[3], inputs[4], routes,
                                                               counts, capacity, model)
                                          : experts(x, inputs[2], inputs[3], inputs[4], taken);
          std::vector<at::Tensor> found = torch::autograd::grad(
              {y}, inputs, {at::linspace(-1, 1, y.numel(), y.options()).view_as(y)}, /*retain_graph=*/true);
          found.push_back(y.detach());
          return found;
        };
        const std::vector<at::Tensor> shared = results(true), alone_results = results(false);
        for (size_t i = 0; i < shared.size(); ++i) {
          at::Tensor expected = alone_results[i];
          if (i >= 2 && i <= 4) {  // of weights: of the tokens of all ranks
            comm->all_reduce(expected.view(-1), ReduceOp::sum).wait();
            expected = expected.narrow(0, comm->rank() * own, own);
          }
          EXPECT_LE((shared[i] - expected).abs().max().item<double>(), 1e-12) << i;
        }
      }
  }
}

// Mistakes that trainers have made, each of which the comparison with one device must find. Under AdamW a
// wrong scale of gradients hardly changes the loss, so norms and parameters are compared, too.
TEST_F(ExpertLayouts, WouldNotPassWithAMistake) {
  const Layout layout{.model = kFourExperts, .expert = 2};
  const auto each_expert = [](Model& model, const auto& body) {
    for (size_t group = 0; group < model.table().groups.size(); ++group)
      if (model.table().groups[group].has_own_experts())
        for (size_t i = 0; i < model.table().groups[group].parameters.size(); ++i)
          body(model.parameter(group, i));
  };
  // The slice of all gradients but those of experts.
  const auto without_experts = [](const TrainingSetup& setup) {
    const strategies::Program& program = setup.programs.step_with_norm;
    int64_t numel = 0;
    for (size_t group = 0; group < program.layout.size(); ++group)
      if (!setup.rank_step.part().table->groups[group].has_own_experts())
        numel += program.layout[group].numel;
    return program.updated.front().gradients.first(numel);
  };
  const std::pair<const char*, Mistake> mistakes[] = {
      {"none", {}},
      {"the mean over the ranks that share experts, where a sum belongs",
       {.in_model =
            [&](Model& model) {
              each_expert(model, [](const at::Tensor& parameter) {
                parameter.register_hook([](const at::Tensor& gradient) { return gradient / 2; });
              });
            }}},
      {"a norm without experts",
       {.in_programs =
            [&](TrainingSetup& setup) {
              auto& counted = setup.programs.step_with_norm.counted;
              counted = setup.rank_step.input().mesh.expert_group().index_of(setup.comm.rank()) == 0
                            ? std::vector{without_experts(setup)}
                            : std::vector<strategies::Slice>();
            }}},
      {"a norm that counts the rest of the model on each of the ranks",
       {.in_programs =
            [&](TrainingSetup& setup) {
              auto& program = setup.programs.step_with_norm;
              program.counted = {program.updated.front().gradients};
            }}},
      {"permuted counts of experts",
       {.in_model =
            [&](Model& model) {
              model.gather_counts = [gather = model.gather_counts](const at::Tensor& own, int64_t ranks,
                                                                   int64_t index) {
                std::vector<int64_t> counts = gather(own, ranks, index);
                for (size_t expert = 0; expert < counts.size(); expert += 2)
                  std::swap(counts[expert], counts[expert + 1]);
                return counts;
              };
            }}},
      {"a gradient of the router's weights that does not come back",
       {.in_model =
            [&](Model& model) {
              // In forward, counts are gathered before rows with a weight travel; in backward, rows without
              // one travel before.
              const auto is_forward = std::make_shared<bool>();
              model.gather_counts = [gather = model.gather_counts, is_forward](const at::Tensor& own,
                                                                               int64_t ranks, int64_t index) {
                *is_forward = true;
                return gather(own, ranks, index);
              };
              model.start_collective = [start = model.start_collective, is_forward](auto dimension, auto what,
                                                                                    const at::Tensor& out,
                                                                                    const at::Tensor& in) {
                start(dimension, what, out, in)();
                const bool has_weights = out.size(1) > kModelWidth;
                if (has_weights && !*is_forward)
                  out.narrow(1, kModelWidth, out.size(1) - kModelWidth).zero_();
                if (has_weights) *is_forward = false;
                return [] {};
              };
            }}},
  };
  const Outcomes& single = single_of(layout, comm->size());
  for (const int64_t dispatch : {kDispatchCopies, int64_t{1}})
    for (const auto& [name, mistake] : mistakes) {
      // Where tokens travel once to each rank, counts are those of ranks, and wrong ones do not even arrive.
      if (dispatch == 1 && std::string(name) == "permuted counts of experts") continue;
      Layout with_dispatch = layout;
      with_dispatch.dispatch = dispatch;
      const Outcomes run = train_layout(with_dispatch, *comm, 3, mistake);
      const double difference =
          std::max({largest_relative(run.losses, single.losses), largest_relative(run.norms, single.norms),
                    parameter_error(run, single)});
      if (std::string(name) == "none")
        EXPECT_LE(difference, 1e-10);
      else
        EXPECT_GT(difference, 1e-4) << name;
    }
}

// Rank 0 throws in place of one of the calls in its blocks. It makes the rest of the calls of both steps as
// the others do, in which no token moves where a count was gathered after the failure.
TEST_F(ExpertLayouts, ARankThatFailsInsideABlockLeavesNoneWaiting) {
  constexpr int64_t kNever = -1;
  const auto two_steps = [&](Layout layout, int64_t fails_at) {
    layout.accumulation = 2;
    const Point point = point_of(layout, comm->size());
    ReadyTraining training(point, *comm);
    const TrainingSetup& setup = training.setup;
    Model& model = *setup.model;
    int64_t num_calls = 0;
    const auto count = [&] {
      if (comm->rank() == 0 && num_calls == fails_at) throw std::runtime_error("no room");
      ++num_calls;
    };
    model.start_collective = [&, start = model.start_collective](auto... call) {
      count();
      return start(call...);
    };
    model.gather_counts = [&, gather = model.gather_counts](const at::Tensor& own, int64_t ranks,
                                                            int64_t index) {
      count();
      return gather(own, ranks, index);
    };
    comm->reset_traffic();
    for (int step = 0; step < 2; ++step) training.step(/*wants_norm=*/true);
    EXPECT_EQ(setup.executor->failure() != nullptr, fails_at != kNever && comm->rank() == 0);
    return comm->traffic().num_operations;
  };
  const std::string with_capacity = "moe(" + kShape + ", experts=4, top_k=2, capacity=1)";
  std::vector<Layout> layouts = {{.model = kFourExperts, .expert = 2},
                                 {.model = kFourExperts, .recompute = 1, .expert = 2},
                                 {.model = with_capacity, .recompute = 1, .expert = 2},
                                 {.model = kFourExperts, .recompute = 1, .expert = 2, .dispatch = 1}};
  if (comm->size() == 4)
    layouts.push_back({.model = kFourExperts, .recompute = 1, .expert = 4, .dispatch = 2});
  for (const Layout& layout : layouts) {
    const int64_t expected = two_steps(layout, kNever);
    for (const int64_t fails_at : {0, 1, 2, 4, 5, 9, 10, 13, 14, 20, 29, 30, 31})
      EXPECT_EQ(two_steps(layout, fails_at), expected) << fails_at << ", dispatch " << layout.dispatch;
  }
}

TEST_F(ExpertLayouts, SayWhatIsImpossible) {
  const auto reason = [&](Layout layout) {
    return strategies::layout_impossible(point_of(layout, comm->size()));
  };
  EXPECT_EQ(reason({.model = kFourExperts, .expert = 2}), "");
  EXPECT_EQ(reason({.model = kFourExperts, .strategy = "single", .expert = 2}),
            "single leaves copies by themselves, and expert ranks have a part of the experts each; take ddp");
  for (const auto& [strategy, text] :
       {std::pair("ddp", ""),
        {"ddp(reduction=int8)",
         "reduction int8 sums every bucket over all ranks, and fewer ranks have the same experts; take "
         "reduction plain"},
        {"fsdp", ""},
        {"hpz(group=2)", ""},
        {"zero3", ""}}) {
    const Point point = point_of({.model = kFourExperts, .strategy = strategy, .expert = 2}, comm->size());
    EXPECT_EQ(
        strategies::strategy(point.training.strategy.name).impossible(strategies::RankStep(point).input()),
        text);
  }
  EXPECT_EQ(reason({.model = "gpt2(layers=1, width=24, heads=3, sequence=11, vocabulary=37)", .expert = 2}),
            "gpt2 has no experts that ranks could share; take moe or moe_8x7b");
  for (const std::string option : {"capacity=1", "aux_loss=0.1"})
    EXPECT_EQ(reason({.model = "moe(sequence=16, " + option + ")", .context = 2}),
              "the capacity and the aux_loss of experts are those of whole samples, and context ranks have a "
              "part of each; take 0 for both, or context 1");
  const std::string even = "moe(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=16, experts=8";
  EXPECT_THAT(reason({.model = even + ")", .tensor = 2, .expert = 2}),
              testing::HasSubstr("take sequence_parallel"));
  EXPECT_THAT(reason({.model = even + ", capacity=1)", .tensor = 2, .sequence_parallel = true, .expert = 2}),
              testing::HasSubstr("take 0 for both, or tensor 1"));
  EXPECT_THAT(
      reason({.model = even + ")", .tensor = 2, .sequence_parallel = true, .expert = 2 * comm->size()}),
      testing::HasSubstr(fmt::format("which is {}", comm->size())));
  if (comm->size() == 4) {
    EXPECT_THAT(reason({.model = even + ")", .tensor = 4, .sequence_parallel = true, .expert = 2}),
                testing::HasSubstr("a multiple of tensor 4"));
  }
  EXPECT_EQ(
      reason({.model = "moe(" + kShape + ", experts=4, capacity=1)", .expert = 2, .dispatch = 1}),
      "rows that are filled up to a capacity travel for each expert; take dispatch copy, or capacity 0");
  EXPECT_EQ(
      reason({.model = kFourExperts, .expert = 2, .dispatch = 2}),
      "dispatch 2 does not cut the 2 ranks that share experts into several groups of as many; take copy "
      "or rank");
  if (comm->size() == 4) {
    EXPECT_EQ(reason({.model = kFourExperts, .expert = 4, .dispatch = 2}), "");
    EXPECT_EQ(
        reason({.model = kFourExperts, .expert = 4, .dispatch = 3}),
        "dispatch 3 does not cut the 4 ranks that share experts into several groups of as many; take 2, "
        "copy or rank");
  }
  EXPECT_EQ(reason({.model = "moe(" + kShape + ", experts=3)", .expert = 2}),
            "expert 2 does not divide the 3 experts of moe");
  EXPECT_EQ(
      reason({.model = "moe(" + kShape + ", experts=9)", .expert = 3}),
      fmt::format("expert 3 does not divide the number of ranks that train on different tokens, which is {}",
                  comm->size()));
}

}  // namespace
}  // namespace shardmark

// Training equals that on one device also with tensor, sequence and context parallelism, with every strategy
// and with pipelines.
// RANKS 2 4
#include "models/layers.h"
#include "tests/mpi/attention_checks.h"
#include "tests/mpi/layouts_fixture.h"
#include "train/evaluation.h"

namespace shardmark {
namespace {

const std::string kSplitShape = "layers=2, width=24, heads=4, sequence=16, vocabulary=37";
const std::string kSplitGpt2 = "gpt2(" + kSplitShape + ")",
                  kSplitTied = "llama(" + kSplitShape + ", kv_heads=4, inner=20, tied=true)",
                  kSplitLlama = "llama(" + kSplitShape + ", kv_heads=4, inner=20, tied=false)",
                  kSplitMoe =
                      "moe(" + kSplitShape + ", kv_heads=4, inner=20, experts=4, top_k=2, tied=false)",
                  kSplitMlp = "mlp(features=13, width=20, layers=5, classes=5)",
                  kEvenMlp = "mlp(features=13, width=20, layers=4, classes=5)";

TEST_F(Layouts, TensorParallelEqualsSingle) {
  for (int64_t tensor = 2; tensor <= comm->size(); tensor *= 2)
    for (const std::string& model : {kSplitGpt2, kSplitTied, kSplitLlama, kSplitMlp, kEvenMlp}) {
      if (model == kSplitMlp && tensor == 4) continue;  // 5 classes cannot be divided among 4 ranks
      expect_equal({.model = model, .tensor = tensor});
      if (model == kSplitMlp || model == kEvenMlp) continue;
      for (const int64_t recompute : {int64_t{0}, kGatheredInputs})
        expect_equal({.model = model, .recompute = recompute, .tensor = tensor, .sequence_parallel = true});
    }
}

// The first of two ranks has 1,088 of 2,050 words, in whole tiles, and the other one ends in padding.
TEST_F(Layouts, TensorParallelOfPaddedWordsEqualsSingle) {
  const std::string shape = "layers=1, width=24, heads=4, sequence=16, vocabulary=2050";
  for (const std::string& model :
       {"gpt2(" + shape + ")", "llama(" + shape + ", kv_heads=4, inner=20, tied=false)"})
    for (const std::string strategy : {"ddp", "fsdp"})
      expect_equal({.model = model, .strategy = strategy, .tensor = 2});
}

// The loss of ranks that share a vocabulary has a form of its own in bf16.
TEST_F(Layouts, TensorParallelInBf16IsVerifiedByASweep) {
  const auto verify = [&](Layout layout) {
    layout.accumulation = 2;
    layout.precision = "bf16";
    const Record record = measured(layout, world, *comm);
    EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
    EXPECT_EQ(record.measures.verified, "equal to one device") << to_text(record.point);
  };
  for (const std::string& model : {kSplitGpt2, kSplitLlama, kEvenMlp}) {
    for (const int64_t recompute : {0, 1}) verify({.model = model, .recompute = recompute, .tensor = 2});
    if (comm->size() < 4) continue;
    verify({.model = model, .pipeline = 2, .schedule = "zero_bubble", .tensor = 2});
    if (model != kEvenMlp) verify({.model = model, .tensor = 2, .context = 2});
  }
}

// Tensor ranks share the inner channels of each expert, and the router's gradients are those of all of them.
TEST_F(Layouts, TensorParallelOfExpertsEqualsSingle) {
  for (int64_t tensor = 2; tensor <= comm->size(); tensor *= 2)
    for (const std::string options :
         {"tied=true", "tied=false, shared_inner=12", "top_k=1, routing=hot(experts=1, share=0.5)",
          "routing=zipf(exponent=1)"})
      for (const bool sequence_parallel : {false, true}) {
        const std::string top_k = options.starts_with("top_k") ? "" : "top_k=2, ";
        Layout layout{
            .model = "moe(" + kSplitShape + ", kv_heads=4, inner=20, experts=4, " + top_k + options + ")",
            .tensor = tensor,
            .sequence_parallel = sequence_parallel};
        expect_equal(layout);
        layout.recompute = sequence_parallel && options == "tied=true" ? kGatheredInputs : 1;
        layout.strategy = "fsdp";
        expect_equal(layout);
      }
}

// With a capacity, which is that of a micro-batch, tensor ranks drop what one rank with the same
// micro-batches does.
TEST_F(Layouts, TensorRanksDropTheSameCopies) {
  const std::string model =
      "moe(" + kSplitShape + ", kv_heads=4, inner=20, experts=4, top_k=2, shared_inner=8, capacity=1.0)";
  const Outcomes one = train_layout({.model = model, .strategy = "single"}, *alone);
  for (const bool sequence_parallel : {false, true}) {
    const Outcomes run =
        train_layout({.model = model, .tensor = comm->size(), .sequence_parallel = sequence_parallel}, *comm);
    EXPECT_TRUE(run.expert_load.equal(one.expert_load));
    EXPECT_LE(largest_relative(run.losses, one.losses), 1e-10);
    EXPECT_LE(largest_relative(run.norms, one.norms), 1e-10);
    EXPECT_LE(parameter_error(run, one), 1e-10);
  }
  EXPECT_LT(one.expert_load.sum().item<double>(), 3 * 4 * 2 * 16 * 2 * 2) << "nothing was dropped";
}

// Two query heads share one head of keys and values. Each of the two ranks has one of the latter.
TEST_F(Layouts, TensorParallelOfGroupedQueriesEqualsSingle) {
  for (const std::string tied : {"true", "false"}) {
    const std::string model = "llama(" + kSplitShape + ", kv_heads=2, inner=20, tied=" + tied + ")";
    for (const bool sequence_parallel : {false, true})
      expect_equal({.model = model, .tensor = 2, .sequence_parallel = sequence_parallel});
  }
}

TEST_F(Layouts, ContextParallelEqualsSingle) {
  for (int64_t context = 2; context <= comm->size(); context *= 2) {
    for (const std::string& model : {kSplitGpt2, kSplitTied, kSplitLlama})
      expect_equal({.model = model, .context = context});
    for (const std::string kv_heads : {"1", "2"})
      expect_equal({.model = "llama(" + kSplitShape + ", kv_heads=" + kv_heads + ", inner=20)",
                    .recompute = 1,
                    .context = context});
  }
}

TEST_F(Layouts, AttentionOfContextRanksIsThatWithAMask) {
  expect_attention_is_that_with_a_mask(at::kCPU, at::kDouble, 1e-12);
  expect_attention_is_that_with_a_mask(at::kCPU, at::kFloat, 1e-5);
  expect_attention_is_that_with_a_mask(at::kCPU, at::kBFloat16, 0.04);
}

// With dropout, a model is verified without it, by the form of attention that is timed.
TEST_F(Layouts, ContextRanksHaveAMaskIfTheModelHasDropout) {
  for (const bool has_dropout : {false, true}) {
    const std::string dropout = has_dropout ? "0.1" : "0";
    const Point point =
        point_of({.model = "gpt2(" + kSplitShape + ", dropout=" + dropout + ")", .context = 2}, comm->size());
    TrainingSetup setup(point, *comm);
    setup.allocate();
    const Batch batch{at::zeros({1, 16}, at::kLong), at::zeros({1, 16}, at::kLong)};
    for (const bool draws : {false, true}) {
      setup.model->draws = draws && has_dropout;
      EXPECT_EQ(setup.model->prepared(batch).mask.defined(), has_dropout);
    }
    const strategies::StepInput& input = setup.rank_step.input();
    EXPECT_EQ(input.drops_in_context, has_dropout);
  }
}

TEST_F(Layouts, SplitModelsOfEveryStrategyEqualSingle) {
  for (const std::string& strategy : all_strategies(comm->size() / 2)) {
    if (strategy == "auto") continue;
    expect_equal({.model = kSplitGpt2, .strategy = strategy, .tensor = 2});
    expect_equal({.model = kSplitTied, .strategy = strategy, .tensor = 2, .sequence_parallel = true});
    expect_equal({.model = kSplitMoe, .strategy = strategy, .tensor = 2, .sequence_parallel = true});
  }
  for (const std::string& strategy : all_strategies(comm->size()))
    if (strategy != "auto" && strategy != "single")
      expect_equal({.model = kSplitLlama, .strategy = strategy, .context = 2});
}

TEST_F(Layouts, SplitModelsInPipelines) {
  if (comm->size() < 4) GTEST_SKIP() << "4 ranks";
  for (const std::string& model : {kSplitGpt2, kSplitTied, kSplitLlama, kSplitMoe, kSplitMlp})
    for (const std::string& schedule : kSchedules) {
      if (has_two_chunks(schedule) && model == kSplitTied) continue;  // the model has only 3 blocks
      for (const std::string order : {"dp-pp", "pp-dp"}) {
        Layout layout{.model = model, .pipeline = 2, .schedule = schedule, .tensor = 2};
        layout.rank_order = order;
        expect_equal(layout);
        if (model == kSplitMlp) continue;
        layout.sequence_parallel = true;
        expect_equal(layout);
        if (order == "dp-pp") {
          layout.recompute = kGatheredInputs;
          expect_equal(layout);
          layout.recompute = 0;
        }
        layout.tensor = 1;
        layout.sequence_parallel = false;
        layout.context = 2;
        expect_equal(layout);
      }
    }
}

TEST_F(Layouts, SplitInFp32AndClippedAndRecomputed) {
  for (const std::string& optimizer : kOptimizers)
    for (const bool sequence_parallel : {false, true}) {
      Layout layout{.model = sequence_parallel ? kSplitMoe : kSplitTied,
                    .strategy = "fsdp",
                    .tensor = 2,
                    .sequence_parallel = sequence_parallel};
      layout.optimizer = optimizer;
      expect_equal_clipped_recomputed_and_in_fp32(layout);
    }
}

double bytes_of_step(const Layout& layout, Communicator& comm) {
  const Point point = point_of(layout, comm.size());
  TrainingSetup setup(point, comm);
  setup.allocate();
  setup.state->publish();
  const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
  Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm.device(), 0);
  comm.reset_traffic();
  setup.executor->step([&] { return loader.next(); }, /*wants_norm=*/true);
  return comm.traffic().ring_bytes;
}

// Compares the bytes of a step with the formulas in strategies/README.md, in which collectives are rings.
TEST_F(Layouts, BytesOfTensorAndContextRanks) {
  constexpr double kLayers = 2, kWidth = 24, kTokens = 16, kSamples = 2, kMicroBatches = 4, kBytes = 8;
  const auto n = static_cast<double>(comm->size());
  const double stream = kSamples * kTokens * kWidth * kBytes, ring = (n - 1) / n;
  const double regions = kMicroBatches * (4 * kLayers + 2) * stream * 2 * ring;
  const double loss = kMicroBatches * 2 * n * kSamples * kTokens * kBytes * ring;
  const double squares = 8 * 2 * ring, norms = (6 * kLayers + 2) * kWidth, positions = kTokens * kWidth;
  const auto bytes_of = [&](const Layout& layout) { return bytes_of_step(layout, *comm); };
  Layout layout{.model = kSplitGpt2, .strategy = "single", .tensor = comm->size()};
  EXPECT_DOUBLE_EQ(bytes_of(layout), regions + loss + squares);
  layout.sequence_parallel = true;
  const double of_whole_tokens = (norms + positions) * kBytes * 2 * ring;
  EXPECT_DOUBLE_EQ(bytes_of(layout), regions + loss + squares + of_whole_tokens);
  // Korthikanti et al. 2022: a layer that gathers its inputs again moves 1.25 times as much. The head has an
  // input, too.
  layout.recompute = kGatheredInputs;
  const double of_layers = kMicroBatches * 4 * kLayers * stream * 2 * ring,
               of_head = kMicroBatches * stream * ring;
  EXPECT_DOUBLE_EQ(bytes_of(layout), regions + 0.25 * of_layers + of_head + loss + squares + of_whole_tokens);

  const double keys_values = kMicroBatches * kLayers * 2 * stream * 2 * ring;
  double gradients = 0;  // including the padding, in ddp's buckets
  const specs::SharedTable whole = specs::model_table(point_of(layout, comm->size()).training.model);
  for (const auto& group : specs::even_layout(*whole, specs::ProcessGroup{}))
    gradients += static_cast<double>(group.numel);
  Layout context{.model = kSplitGpt2, .context = comm->size()};
  EXPECT_DOUBLE_EQ(bytes_of(context), keys_values + gradients * kBytes * 2 * ring);
}

// A mixture exchanges its logits as well, and with sequence_parallel the router's gradient is summed with
// those of the norms.
TEST_F(Layouts, BytesOfTensorRanksOfAMixture) {
  constexpr double kLayers = 2, kWidth = 24, kTokens = 16, kSamples = 2, kMicroBatches = 4, kBytes = 8,
                   kExperts = 4;
  const auto n = static_cast<double>(comm->size());
  const double tokens = kMicroBatches * kSamples * kTokens * kBytes, ring = (n - 1) / n;
  const double regions = ((4 * kLayers + 2) * kWidth + kLayers * kExperts) * tokens * 2 * ring;
  const double loss = 2 * n * tokens * ring, squares = 8 * 2 * ring;
  const double on_all = (2 * kLayers + 1) * kWidth + kLayers * kExperts * kWidth;
  Layout layout{.model = kSplitMoe, .strategy = "single", .tensor = comm->size()};
  EXPECT_DOUBLE_EQ(bytes_of_step(layout, *comm), regions + loss + squares);
  layout.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(bytes_of_step(layout, *comm), regions + loss + squares + on_all * kBytes * 2 * ring);
}

// The collectives of a block by tensor-parallel ranks, which are counted and may fail where they are started
// and where they are waited for.
int64_t operations_of_two_steps(const Layout& layout, Communicator& comm, int64_t fails_at) {
  const Point point = point_of(layout, comm.size());
  ReadyTraining training(point, comm);
  int64_t num_events = 0;
  const auto count = [&] {
    if (comm.rank() == 0 && num_events == fails_at) throw std::runtime_error("no room");
    ++num_events;
  };
  Model& model = *training.setup.model;
  model.start_collective = [&, start = model.start_collective](auto... call) {
    count();
    return [&, wait = start(call...)] {
      count();
      wait();
    };
  };
  comm.reset_traffic();
  for (int step = 0; step < 2; ++step) training.step(/*wants_norm=*/true);
  EXPECT_EQ(training.setup.executor->failure() != nullptr, comm.rank() == 0 && fails_at >= 0);
  return comm.traffic().num_operations;
}

// Rank 0 fails between the start of a call and its end, while products are computed, or before it starts. It
// makes the rest of the calls of both steps as the others do.
TEST_F(Layouts, ARankThatFailsWhileACallIsUnderWayLeavesNoneWaiting) {
  for (const bool sequence_parallel : {false, true}) {
    const Layout layout{.model = sequence_parallel ? kSplitGpt2 : kSplitMoe,
                        .strategy = "single",
                        .accumulation = 2,
                        .recompute = sequence_parallel ? kGatheredInputs : 0,
                        .tensor = comm->size(),
                        .sequence_parallel = sequence_parallel};
    const int64_t expected = operations_of_two_steps(layout, *comm, /*fails_at=*/-1);
    for (const int64_t fails_at : {0, 1, 6, 11, 12, 13, 14, 15, 16, 17, 18, 19, 24, 25, 40, 50})
      EXPECT_EQ(operations_of_two_steps(layout, *comm, fails_at), expected) << fails_at;
  }
}

// The layers that read the input of a region leave the gradients of their parameters until the sum over ranks
// has started, and then add exactly what autograd would have added.
TEST_F(Layouts, GradientsOfParametersHideTheSumOverRanks) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const bool sequence_parallel : {false, true})
      for (const bool gathers_again : {false, true}) {
        if (gathers_again && !sequence_parallel) continue;
        const specs::SharedTable whole = specs::model_table(
            resolve(choice_from_text(kSplitGpt2), specs::model_spec("gpt2").options, "model"));
        const specs::Split split{
            .tensor = 2, .sequence_parallel = sequence_parallel, .gathers_again = gathers_again};
        const auto model = std::make_unique<Model>(specs::split_table(*whole, split), type, at::kCPU);
        const auto options = at::TensorOptions(type);
        at::manual_seed(5);
        const at::Tensor weight = at::randn({24, 36}).to(options).requires_grad_(true),
                         bias = at::randn({36}).to(options).requires_grad_(true),
                         matrix = at::randn({12, 24}).to(options).requires_grad_(true);
        const at::Tensor x = at::randn({sequence_parallel ? 8 : 16, 24}).to(options).requires_grad_(true);
        for (const at::Tensor* parameter : {&weight, &bias, &matrix})
          parameter->mutable_grad() = at::zeros_like(*parameter);
        std::vector<std::string> events;
        // Both ranks have the same values, whose sum is that of one rank for this test.
        model->start_collective = [&](specs::Dimension, specs::Collective what, const at::Tensor& out,
                                      const at::Tensor& in) -> std::function<void()> {
          const std::string state = weight.grad().any().item<bool>() ? " (added)" : "";
          events.push_back(specs::collective(what).name + state);
          if (what == specs::Collective::all_gather)
            out.copy_(at::cat({in, in}));
          else if (what == specs::Collective::reduce_scatter)
            out.copy_(in.narrow(0, 0, 8));
          else
            out.copy_(in);
          return [&, what] {
            const bool was_added = weight.grad().any().item<bool>();
            events.push_back("end of " + specs::collective(what).name + (was_added ? " (added)" : ""));
          };
        };
        const LayerInput in = copy_to_tensor_region(*model, x);
        const at::Tensor projected = Projection{weight, bias, *model}(in), other = Matrix{matrix, *model}(in);
        const at::Tensor dy = at::randn({16, 36}).to(options), dother = at::randn({16, 12}).to(options);
        torch::autograd::backward({projected, other}, {dy, dother});

        const at::Tensor all = (sequence_parallel ? at::cat({x, x}) : x).detach().requires_grad_(true);
        std::vector<at::Tensor> leaves;
        for (const at::Tensor* parameter : {&weight, &bias, &matrix})
          leaves.push_back(parameter->detach().clone().requires_grad_(true));
        torch::autograd::backward({at::addmm(leaves[1], all, leaves[0]), at::linear(all, leaves[2])},
                                  {dy, dother});
        EXPECT_TRUE(weight.grad().equal(leaves[0].grad()));
        EXPECT_TRUE(bias.grad().equal(leaves[1].grad()));
        EXPECT_TRUE(matrix.grad().equal(leaves[2].grad()));
        EXPECT_TRUE(x.grad().equal(sequence_parallel ? all.grad().narrow(0, 0, 8) : all.grad()));
        const std::vector<std::string> expected =
            gathers_again       ? std::vector<std::string>{"all_gather",        "end of all_gather",
                                                           "all_gather",        "reduce_scatter",
                                                           "end of all_gather", "end of reduce_scatter (added)"}
            : sequence_parallel ? std::vector<std::string>{"all_gather", "end of all_gather",
                                                           "reduce_scatter", "end of reduce_scatter (added)"}
                                : std::vector<std::string>{"all_reduce", "end of all_reduce (added)"};
        EXPECT_EQ(events, expected);
      }
}

// Evaluation over tensor-parallel and context-parallel ranks gives the same result as on one rank, also with
// an incomplete last batch.
TEST_F(Layouts, EvaluationIsThatOfOneRank) {
  const auto evaluated = [&](const Layout& layout, Communicator& ranks, const HostGroup& group) {
    const Point point = point_of(layout, ranks.size());
    TrainingSetup setup(point, ranks);
    setup.allocate();
    setup.state->publish();
    DataContext context{setup.whole.sample, setup.model->dtype(), 7};
    context.holds_out = true;
    const auto source = make_source(point.training.data, context);
    return evaluate(*setup.model, *setup.executor, ranks, group, *source, point.training.batch_size, 100);
  };
  const Evaluation expected =
      evaluated({.model = kSplitGpt2, .strategy = "single"}, *alone, world.split(world.rank(), 0));
  const auto expect_same = [&](const Layout& layout) {
    const Evaluation found = evaluated(layout, *comm, world);
    EXPECT_NEAR(found.loss, expected.loss, 1e-10);
    EXPECT_DOUBLE_EQ(found.accuracy, expected.accuracy);
  };
  expect_same({.model = kSplitGpt2, .tensor = 2});
  expect_same({.model = kSplitGpt2, .tensor = 2, .sequence_parallel = true});
  expect_same({.model = kSplitGpt2, .context = 2});
  expect_same({.model = kSplitGpt2, .recompute = kGatheredInputs, .tensor = 2, .sequence_parallel = true});
  expect_same({.model = kSplitGpt2, .pipeline = 2});
  expect_same({.model = kSplitGpt2, .pipeline = 2, .schedule = "zero_bubble_v"});
}

// Tensor-parallel ranks with the same activations must drop the same elements. Otherwise the sum of their
// results would be wrong.
TEST_F(Layouts, TensorRanksDropTheSameActivations) {
  const std::string model = "gpt2(" + kSplitShape + ", dropout=0.2)";
  for (const bool sequence_parallel : {false, true}) {
    const Point point =
        point_of({.model = model, .tensor = 2, .sequence_parallel = sequence_parallel}, comm->size());
    TrainingSetup setup(point, *comm);
    setup.allocate();
    setup.state->publish();
    const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
    Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm->device(), 0);
    for (int step = 0; step < 2; ++step) {
      const double loss = setup.executor->step([&] { return loader.next(); }).loss.item<double>();
      const HostGroup pair = world.split(world.rank() / 2, world.rank());
      EXPECT_EQ(pair.max(loss), loss);
    }
  }
}

TEST_F(Layouts, OfBothTensorAndContext) {
  if (comm->size() < 4) GTEST_SKIP() << "4 ranks";
  for (const std::string& model : {kSplitGpt2, kSplitTied, kSplitLlama, kSplitMoe})
    for (const bool sequence_parallel : {false, true})
      for (const int64_t recompute : {int64_t{0}, kGatheredInputs})
        if (sequence_parallel || recompute == 0)
          expect_equal({.model = model,
                        .strategy = "zero3",
                        .recompute = recompute,
                        .tensor = 2,
                        .sequence_parallel = sequence_parallel,
                        .context = 2});
}

}  // namespace
}  // namespace shardmark

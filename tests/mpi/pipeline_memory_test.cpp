// Compares the peak memory of each rank of a pipeline under every schedule, and of ranks that share experts,
// apart from the memory of their programs, with the formula for activations.
// RANKS 2
#include "device/meter.h"
#include "strategies/activations.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

constexpr int64_t kSamplesHeld = 8;  // samples per micro-batch

class PipelineMemory : public Layouts {
 protected:
  PipelineMemory() {
    static const bool installed = (meter::install(), true);
    EXPECT_TRUE(installed);
    at::set_num_threads(1);
  }

  static Point sized(const Layout& layout, int64_t ranks) {
    Point point = point_of(layout, ranks);
    point.training.batch_size = kSamplesHeld;
    point.training.data = {"synthetic", {{"size", 256}}};
    return point;
  }

  static Layout of(const std::string& model, const std::string& schedule, int64_t recompute) {
    return {.model = model,
            .pipeline = 2,
            .schedule = schedule,
            .accumulation = 6,
            .optimizer = "sgd(lr=0.01)",
            .precision = "fp32",
            .recompute = recompute};
  }

  // Returns the peak of the second step. The first step also allocates memory that libraries keep.
  double measured(const Point& point) {
    TrainingSetup setup(point, *comm);
    setup.allocate();
    setup.state->publish();
    const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
    Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm->device(), 0);
    int64_t held = 0;
    for (int step = 0; step < 2; ++step) {
      held = meter::read().total;
      meter::reset_peak();
      setup.executor->step([&] { return loader.next(); });
      if (setup.executor->failure()) std::rethrow_exception(setup.executor->failure());
    }
    return static_cast<double>(meter::read().peak - held);
  }

  double predicted(const Point& point) const {
    return strategies::activation_bytes(strategies::RankStep(point, comm->rank()).input(), kSamplesHeld);
  }

  void expect_near(const Layout& layout, double tolerance = 0.1) {
    const Point point = sized(layout, comm->size());
    if (!strategies::layout_impossible(point).empty()) return;
    const double formula = predicted(point), held = measured(point);
    EXPECT_NEAR(formula / held, 1, tolerance)
        << to_text(point) << ", stage " << comm->rank() << ": measured " << held << ", predicted " << formula;
  }
};

// Where a rule of routing or a capacity says how many rows experts get, the formula is that of the busiest
// rank.
TEST_F(PipelineMemory, OfSharedExpertsIsThatOfTheBusiestRank) {
  for (const std::string options : {"routing=balanced", "routing=hot(experts=2, share=0.75)",
                                    "routing=hot(experts=2, share=0)", "capacity=1.25", "capacity=0.5"})
    for (const std::string strategy : {"ddp", "fsdp"}) {
      const Layout layout{.model =
                              "moe(layers=4, width=64, heads=4, kv_heads=2, inner=88, sequence=64, "
                              "vocabulary=256, experts=4, top_k=1, " +
                              options + ")",
                          .strategy = strategy,
                          .accumulation = 2,
                          .optimizer = "sgd(lr=0.01)",
                          .precision = "fp32",
                          .expert = 2};
      const Point point = sized(layout, comm->size());
      const double formula = predicted(point), held = world.max(measured(point));
      EXPECT_NEAR(formula / held, 1, 0.05) << options << ", " << strategy;
    }
}

TEST_F(PipelineMemory, OfEveryScheduleIsTheFormulas) {
  for (const char* model :
       {"gpt2(layers=4, width=64, heads=4, sequence=64, vocabulary=256)",
        "gpt2(layers=3, width=16, heads=2, sequence=32, vocabulary=4096)",
        "llama(layers=4, width=64, heads=4, kv_heads=2, inner=176, sequence=64, vocabulary=256, tied=false)",
        "llama(layers=3, width=16, heads=2, kv_heads=1, inner=32, sequence=32, vocabulary=4096)",
        "moe(layers=4, width=64, heads=4, kv_heads=2, inner=88, sequence=64, vocabulary=256, experts=4)",
        "moe(layers=4, width=32, heads=4, kv_heads=2, inner=88, sequence=16, vocabulary=256, experts=16, "
        "aux_loss=0.1)",
        "moe(layers=4, width=64, heads=4, kv_heads=2, inner=88, sequence=64, vocabulary=256, experts=4, "
        "capacity=1.5)"})
    for (const std::string& schedule : kSchedules)
      for (const int64_t recompute : {0, 1}) expect_near(of(model, schedule, recompute));
}

// A stage does not receive its inputs in channels-last format, so the convolutions of a later stage keep
// copies of their inputs (models/resnet.cpp, Note [Channels last]).
TEST_F(PipelineMemory, OfConvolutionsIsTheFormulasButForCopies) {
  for (const std::string& schedule : kSchedules)
    for (const int64_t recompute : {0, 1})
      expect_near(of("resnet(layers=20, width=8)", schedule, recompute), comm->rank() == 0 ? 0.1 : 0.2);
}

// A layer keeps the input and the output of GELU. The last output of a stage is sent and freed, because
// backward does not need it. So a stage with one layer keeps half as much.
TEST_F(PipelineMemory, IsWithoutOutputsThatWereSent) {
  Layout layout = of("mlp(features=16, width=4096, layers=2)", "gpipe", 0);
  layout.accumulation = 16;
  const Point point = sized(layout, comm->size());
  const double held = measured(point), output = kSamplesHeld * 4096 * sizeof(float);
  if (comm->rank() > 0) return;  // the last stage sends no outputs
  EXPECT_LT(held, 1.25 * 16 * output);
  EXPECT_NEAR(predicted(point) / held, 1, 0.2);
}

// Every tensor rank has all tokens' copies, and a part of the inner channels of each expert: many, or fewer
// than the width, so that the copies count most.
TEST_F(PipelineMemory, OfExpertsOfTensorRanks) {
  for (const std::string options : {"inner=256", "inner=48, width=64", "inner=256, capacity=1.25"})
    for (const bool sequence_parallel : {false, true})
      for (const int64_t recompute : {0, 1}) {
        const std::string width = options.find("width") == std::string::npos ? "width=32, " : "";
        const Layout layout{
            .model = "moe(layers=2, " + width + options +
                     ", heads=2, kv_heads=2, experts=4, top_k=2, sequence=128, vocabulary=64, "
                     "routing=balanced)",
            .accumulation = 1,
            .optimizer = "sgd(lr=0.01)",
            .precision = "fp32",
            .recompute = recompute,
            .tensor = 2,
            .sequence_parallel = sequence_parallel};
        ASSERT_EQ(strategies::layout_impossible(point_of(layout, comm->size())), "");
        expect_near(layout);
      }
}

// Tensor ranks that share whole experts have their own tokens in the mixture.
TEST_F(PipelineMemory, OfTensorRanksThatShareExperts) {
  for (const std::string options : {"inner=256", "inner=48", "inner=96, shared_inner=128"})
    for (const int64_t recompute : {int64_t{0}, int64_t{1}, kGatheredInputs})
      expect_near({.model = "moe(layers=2, width=64, heads=2, kv_heads=2, experts=4, top_k=2, sequence=128, "
                            "vocabulary=64, routing=balanced, " +
                            options + ")",
                   .accumulation = 1,
                   .optimizer = "sgd(lr=0.01)",
                   .precision = "fp32",
                   .recompute = recompute,
                   .tensor = 2,
                   .sequence_parallel = true,
                   .expert = 2});
}

// Tokens that travel once to each rank are kept once there, and copied for each of its experts to compute.
TEST_F(PipelineMemory, OfTokensThatTravelOnce) {
  for (const std::string options : {"inner=256, top_k=2", "inner=96, top_k=2", "inner=64, top_k=6",
                                    "inner=32, top_k=2", "inner=16, top_k=6"})
    for (const int64_t dispatch : {kDispatchCopies, int64_t{1}})
      for (const int64_t recompute : {0, 1})
        expect_near({.model = "moe(layers=2, width=64, heads=2, kv_heads=2, experts=8, sequence=128, "
                              "vocabulary=64, routing=balanced, " +
                              options + ")",
                     .accumulation = 1,
                     .optimizer = "sgd(lr=0.01)",
                     .precision = "fp32",
                     .recompute = recompute,
                     .expert = 2,
                     .dispatch = dispatch});
}

// Inputs that are gathered again take less memory, as the formula says.
TEST_F(PipelineMemory, OfTensorRanksThatGatherInputsAgain) {
  for (const char* model :
       {"gpt2(layers=4, width=64, heads=4, sequence=64, vocabulary=64)",
        "llama(layers=4, width=64, heads=4, kv_heads=2, inner=64, sequence=64, vocabulary=64, tied=false)",
        "llama(layers=4, width=64, heads=4, kv_heads=2, inner=256, sequence=64, vocabulary=64)"}) {
    Layout layout{.model = model,
                  .accumulation = 1,
                  .optimizer = "sgd(lr=0.01)",
                  .precision = "fp32",
                  .tensor = 2,
                  .sequence_parallel = true};
    const double kept = predicted(sized(layout, comm->size()));
    expect_near(layout);
    layout.recompute = kGatheredInputs;
    EXPECT_LT(predicted(sized(layout, comm->size())), 0.95 * kept);
    expect_near(layout);
  }
}

// Linear layers keep a byte for each element of their inputs, instead of the inputs.
TEST_F(PipelineMemory, OfProductsInEightBitsHasTheirInputsInEightBits) {
  for (const char* model :
       {"gpt2(layers=6, width=64, heads=4, sequence=64, vocabulary=64)",
        "llama(layers=6, width=64, heads=4, kv_heads=2, inner=192, sequence=64, vocabulary=64)",
        "moe(layers=6, width=64, heads=2, kv_heads=2, experts=4, top_k=2, inner=32, shared_inner=192, "
        "sequence=64, vocabulary=64, routing=balanced)"})
    for (const auto& [tensor, sequence_parallel, recompute] :
         {std::tuple(1, false, int64_t{0}), {2, false, 0}, {2, true, 0}, {2, true, kGatheredInputs}}) {
      Layout layout{.model = model,
                    .accumulation = 1,
                    .optimizer = "sgd(lr=0.01)",
                    .precision = "fp32",
                    .recompute = recompute,
                    .tensor = tensor,
                    .sequence_parallel = sequence_parallel};
      const double plain = predicted(sized(layout, comm->size()));
      layout.products = "fp8";
      EXPECT_LT(predicted(sized(layout, comm->size())), 0.95 * plain);
      expect_near(layout);
    }
  const auto mixture = [](const std::string& options) {
    return "moe(layers=6, width=64, heads=2, kv_heads=2, experts=4, top_k=2, sequence=64, vocabulary=64, "
           "routing=balanced, " +
           options + ")";
  };
  for (const char* schedule : {"1f1b", "zero_bubble"})
    for (const std::string products : {"fp8", "fp8(scaling=block)"})
      for (const std::string& model :
           {std::string(
                "llama(layers=6, width=64, heads=4, kv_heads=2, inner=192, sequence=64, vocabulary=64)"),
            mixture("inner=192"), mixture("inner=32, shared_inner=192")}) {
        Layout layout = of(model, schedule, 0);
        layout.products = products;
        expect_near(layout);
      }
  for (const int64_t recompute : {int64_t{0}, kGatheredInputs})
    expect_near({.model = mixture("inner=32, shared_inner=192"),
                 .accumulation = 1,
                 .optimizer = "sgd(lr=0.01)",
                 .precision = "fp32",
                 .recompute = recompute,
                 .tensor = 2,
                 .sequence_parallel = true,
                 .expert = 2,
                 .products = "fp8"});
}

// A mask of half of the scores would take 2 MiB, and each layer keeps about as much.
TEST_F(PipelineMemory, OfContextRanksHasNoMask) {
  for (const char* model :
       {"gpt2(layers=2, width=8, heads=2, sequence=1024, vocabulary=32)",
        "llama(layers=2, width=8, heads=2, kv_heads=1, inner=16, sequence=1024, vocabulary=32)"})
    expect_near(
        {.model = model, .accumulation = 1, .optimizer = "sgd(lr=0.01)", .precision = "fp32", .context = 2});
}

// In fp32 the exponentials or gradients of a rank's part of the logits need further memory; in bf16 they
// overwrite the logits. The library's products in bf16 on CPUs have 0.2 to 0.5 MB for themselves, which is
// little beside 4 MB of logits.
TEST_F(PipelineMemory, OfTensorRanksIn16Bits) {
  for (const char* model : {"gpt2(layers=2, width=16, heads=2, sequence=32, vocabulary=16384)",
                            "llama(layers=2, width=16, heads=2, kv_heads=2, inner=32, sequence=32, "
                            "vocabulary=16384, tied=false)"})
    for (const std::string precision : {"fp32", "bf16"})
      expect_near({.model = model,
                   .accumulation = 1,
                   .optimizer = "sgd(lr=0.01)",
                   .precision = precision,
                   .tensor = 2});
}

}  // namespace
}  // namespace shardmark

// Tests the gradient reductions of ddp in all parallel layouts: parameters that several ranks share stay
// equal, whatever a lossy reduction leaves out.
// RANKS 4
#include "executor/training_setup.h"
#include "plan/plan.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

const std::string kModel = "gpt2(layers=3, width=16, heads=4, sequence=8, vocabulary=16)";

std::string reduced_by(const std::string& reduction) {
  return "ddp(bucket_mb=0.02, first_bucket_mb=0.01, reduction=" + reduction + ")";
}

// The losses decrease, and all ranks have bitwise equal parameters.
TEST_F(Layouts, OfEveryReduction) {
  if (comm->size() < 4) GTEST_SKIP() << "4 ranks";
  for (const std::string reduction : {"cast(to=bf16)", "topk(ratio=0.05)", "powersgd(rank=1)", "int8"})
    for (Layout layout : {Layout{.model = kModel, .pipeline = 2}, Layout{.model = kModel, .context = 2},
                          Layout{.model = kModel, .tensor = 2},
                          Layout{.model = kModel, .tensor = 2, .sequence_parallel = true}}) {
      layout.strategy = reduced_by(reduction);
      layout.precision = "fp32";
      layout.optimizer = "adamw(lr=0.01)";
      const Point point = point_of(layout, comm->size());
      SCOPED_TRACE(to_text(point));
      const bool couples = reduction.starts_with("topk") || reduction == "int8";
      const std::string reason = strategy_reason(point);
      EXPECT_EQ(!reason.empty(), couples && layout.tensor > 1 && !layout.sequence_parallel) << reason;
      if (!reason.empty()) continue;
      const Outcomes run = train_layout(layout, *comm, /*num_steps=*/8);
      EXPECT_LT(run.losses.back(), run.losses.front());
      expect_same_bits(run);
    }
}

// Every rank keeps its own residuals of lossy reductions, just as it has its own shard of the model.
TEST_F(Layouts, TensorRanksGoOnFromTheirResiduals) {
  if (comm->size() < 4) GTEST_SKIP() << "4 ranks";
  using Tensors = std::map<std::string, at::Tensor>;
  for (const bool sequence_parallel : {true, false}) {
    const std::string reduction = sequence_parallel ? "topk(ratio=0.05)" : "powersgd(rank=1)";
    SCOPED_TRACE(reduction);
    const Point point = point_of({.model = kModel,
                                  .strategy = reduced_by(reduction),
                                  .tensor = 2,
                                  .sequence_parallel = sequence_parallel},
                                 comm->size());
    const auto states_after = [&](const Tensors* from) {  // a state after every two steps
      TrainingSetup setup(point, *comm);
      setup.allocate();
      const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
      Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm->device(), 0);
      const auto steps = [&](int64_t micro_batches, const std::function<void()>& each) {
        for (int64_t m = 0; m < micro_batches; ++m) each();
      };
      if (from == nullptr) {
        setup.state->publish();
      } else {
        const StateReader read = [&](const std::string& name) { return from->at(name); };
        setup.state->load(State::all, read);
        setup.state->load_carried(read);
        steps(2 * point.training.accumulation, [&] { loader.next(); });
      }
      std::vector<Tensors> states;
      for (int part = from == nullptr ? 0 : 1; part < 2; ++part) {
        steps(2, [&] { setup.executor->step([&] { return loader.next(); }, /*wants_norm=*/true); });
        Tensors& state = states.emplace_back();
        setup.state->visit(State::all,
                           [&](const std::string& name, const at::Tensor& value) { state[name] = value; });
      }
      return states;
    };
    const std::vector<Tensors> whole = states_after(nullptr);
    const std::vector<Tensors> resumed = states_after(&whole[0]);
    EXPECT_TRUE(std::any_of(whole[0].begin(), whole[0].end(), [](const auto& entry) {
      return entry.first.starts_with("reduction.") && entry.first.ends_with(".rank3");
    }));
    for (const auto& [name, value] : whole[1]) EXPECT_TRUE(resumed[0].at(name).equal(value)) << name;
  }
}

}  // namespace
}  // namespace shardmark

// A point whose training diverges gets the outcome `wrong` on all ranks, and the reason names the step. This
// holds for every strategy and layout, and never ends the job.
// RANKS 2 4
#include <gmock/gmock.h>

#include "sweep/measure.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDiverges = "adamw(lr=1e30)";

class Diverging : public OnCpuRanks {
 protected:
  Record measure(Point point) {
    point.sampling.warmup_steps = 1;
    point.sampling.min_steps = point.sampling.max_steps = 5;
    return measure_point({point, world, *comm, resources_, references_, heartbeat_});
  }

  Record measure(Layout layout, const std::string& optimizer = kDiverges,
                 const std::string& precision = "fp32") {
    layout.optimizer = optimizer;
    layout.precision = precision;
    const Point point = point_of(layout, comm->size());
    EXPECT_EQ(strategies::layout_impossible(point), "");
    return measure(point);
  }

  void expect_wrong(const Layout& layout) {
    const Record record = measure(layout);
    SCOPED_TRACE(to_text(record.point) + ": " + record.reason);
    EXPECT_EQ(record.outcome, Outcome::wrong);
    EXPECT_THAT(record.reason, HasSubstr("is not finite at step 2, as on one device: training diverges"));
    EXPECT_EQ(record.reason, record.measures.verified);
    EXPECT_TRUE(std::isnan(record.measures.verify_error));
  }

  Resources resources_;
  ReferenceCache references_;
  HeartbeatPage page_{};
  Heartbeat heartbeat_{page_};
};

TEST_F(Diverging, IsWrongUnderEveryStrategy) {
  for (const std::string& strategy : all_strategies(comm->size())) expect_wrong({kModels[0], strategy});
  for (const std::string& model : kModels) expect_wrong({model, "fsdp"});
}

TEST_F(Diverging, IsWrongAmongReplicas) {
  Layout layout{kModels[1], "single"};
  layout.accumulation = 1;
  expect_wrong(layout);
}

TEST_F(Diverging, IsWrongInEveryLayout) {
  const std::string deep = "gpt2(layers=4, width=24, heads=4, sequence=12, vocabulary=37)";
  for (const std::string& schedule : kSchedules)
    for (const char* strategy : {"ddp", "fsdp"}) {
      Layout layout{deep, strategy, 2, schedule};
      expect_wrong(layout);
      layout.clip_norm = 0.5;
      expect_wrong(layout);
    }
  Layout tensor{deep}, context{deep, "zero3"};
  tensor.tensor = context.context = 2;
  expect_wrong(context);
  expect_wrong(tensor);
  tensor.sequence_parallel = true;
  expect_wrong(tensor);
  const std::string mixture =
      "moe(layers=2, width=24, heads=2, kv_heads=2, inner=20, sequence=12, vocabulary=37, experts=4)";
  Layout expert{mixture}, cut{mixture};
  expert.expert = cut.tensor = 2;
  expect_wrong(expert);
  expect_wrong(cut);
}

// In fp64, the first steps of this training are finite.
TEST_F(Diverging, IsWrongAfterTheStepsThatAreCompared) {
  const Record record = measure({kModels[0], "ddp"}, "sgd(lr=1e30)", "fp64");
  SCOPED_TRACE(record.reason);
  EXPECT_EQ(record.outcome, Outcome::wrong);
  EXPECT_THAT(record.reason, HasSubstr("the loss is not finite after "));
  EXPECT_EQ(record.measures.verified, "equal to one device");
}

TEST_F(Diverging, LeavesTheNextPointAlone) {
  expect_wrong({kModels[1], "fsdp"});
  const Record record = measure({kModels[1], "fsdp"}, "adamw(lr=0.001)");
  EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
  EXPECT_EQ(record.measures.verified, "equal to one device");
}

}  // namespace
}  // namespace shardmark

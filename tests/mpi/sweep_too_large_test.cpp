// A layout that does not fit on one device is verified with fewer layers, and the record says so. Every
// record of training has the time to its first step. RANKS 2
#include <gmock/gmock.h>

#include "device/meter.h"
#include "sweep/measure.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

class TooLarge : public OnCpuRanks {
 protected:
  void SetUp() override {
    static const bool installed = (meter::install(), true);
    static_cast<void>(installed);
  }
  void TearDown() override { meter::set_limit(0); }

  Record measure(const Point& point) {
    Resources resources;
    resources.start = {.launcher_s = 3, .program_s = 2, .mpi_s = 1};
    ReferenceCache references;
    HeartbeatPage page{};
    Heartbeat heartbeat{page};
    return measure_point({point, world, *comm, resources, references, heartbeat, {}, {}, kCommunicatorsS});
  }
  static constexpr double kCommunicatorsS = 100;
  Point point(const std::string& model) const {
    Layout layout{model, "ddp", 2};
    layout.precision = "fp32";
    layout.accumulation = 2;
    Point point = point_of(layout, comm->size());
    point.sampling.warmup_steps = 1;
    point.sampling.min_steps = point.sampling.max_steps = 2;
    return point;
  }
  // Limits the memory of a rank so that its stage fits, but not a reference in addition.
  Record measure_within(const Point& point, double shares_of_stage) {
    const Record roomy = measure(point);
    EXPECT_EQ(roomy.measures.verified, "equal to one device") << roomy.reason;
    const auto held = static_cast<double>(meter::read().total);
    meter::set_limit(static_cast<int64_t>(held + shares_of_stage * roomy.measures.peak_bytes));
    return measure(point);
  }
};

constexpr const char* kGpt2 = "gpt2(layers=12, width=128, heads=2, sequence=8, vocabulary=16)";

TEST_F(TooLarge, IsVerifiedWithFewerLayers) {
  const Record record = measure_within(point(kGpt2), 1.8);
  EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
  EXPECT_EQ(record.measures.verified, "equal to one device with 1 of 12 layers");
  EXPECT_LT(record.measures.verify_error, 1e-3);
  EXPECT_EQ(record.point.training.model.options.at("layers").get<int64_t>(), 12) << "what was measured";
}

TEST_F(TooLarge, KeepsTheTimeToItsFirstStep) {
  const Record record = measure(point(kGpt2));
  if (world.rank() != 0) return;
  const Measures& m = record.measures;
  EXPECT_EQ(m.launcher_s, 3);
  EXPECT_EQ(m.program_s, 2);
  EXPECT_EQ(m.mpi_s, 1);
  EXPECT_GT(m.communicators_s, kCommunicatorsS) << "those of the layout are not made in no time";
  EXPECT_LT(m.communicators_s, kCommunicatorsS + record.duration_s);
  EXPECT_GT(m.model_s, 0);
  EXPECT_GT(m.first_step_s, 0);
  EXPECT_LT(m.model_s + m.first_step_s, 2 * record.duration_s) << "each is of the slowest rank";
}

TEST_F(TooLarge, StaysUnverifiedWhereItHasNoFewerLayers) {
  Point least = point("gpt2(layers=1, width=256, heads=2, sequence=8, vocabulary=16)");
  const Record record = measure_within(least, 1.8);
  EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
  EXPECT_EQ(record.measures.verified, "unverified: one device does not have enough memory for it");
}

}  // namespace
}  // namespace shardmark

// Tests goodput, the share of the time that remains after failures. The formulas are compared with published
// values and with simulated failures. Further tests cover the table.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/stats/goodput.h"
#include "analysis_fixture.h"
#include "base/error.h"
#include "plots_fixture.h"

namespace shardmark {
namespace {

constexpr double kMinute = 60, kHour = 3600;

double best(const Interruptions& job) { return goodput(job, daly_interval_s(job)); }

// These values are from figures 3 to 5 of Daly's paper. Writing a checkpoint takes 5 minutes and a restart
// takes 10.
TEST(Goodput, BestIntervalsAreThoseOfDalysPaper) {
  const auto minutes = [](double between_s) {
    return daly_interval_s({between_s, 5 * kMinute, 0, 10 * kMinute}) / kMinute;
  };
  EXPECT_NEAR(minutes(24 * kHour), 117, 0.5);
  EXPECT_NEAR(minutes(6 * kHour), 57, 0.5);
  EXPECT_NEAR(minutes(15 * kMinute), 9.1, 0.05);
  EXPECT_EQ(daly_interval_s({kMinute, 2 * kMinute, 0, 0}), kMinute)
      << "writing takes as long as two failures";
}

// A job fails every 6,000 s, needs 600 s to restart and 10 s to write a checkpoint, and its steps take 15 s.
// Young's formula gives an interval of 346 s, and the interval of highest availability (arXiv 2410.18124) is
// 24 steps. The goodput of the latter is nearly the best.
TEST(Goodput, PublishedIntervalsAreAsGood) {
  const Interruptions job{6000, 10, 0, 600};
  EXPECT_NEAR(young_interval_s(job), 346.4, 0.05);
  const double availability_s = std::sqrt(2 * (6000 + 600) * 10 + 100);
  EXPECT_EQ(std::floor(availability_s / 15), 24);
  EXPECT_NEAR(goodput(job, 24 * 15), best(job), 1e-4);
  EXPECT_LE(goodput(job, 24 * 15), best(job));
}

// Llama 3 had 419 interruptions in 54 days on 16,384 ranks. Writing takes 60 s and a restart takes 10
// minutes. The first-order formula gives 97, 86 and 68 % at its own best interval. It ignores failures during
// repeated work and several failures in one interval, so it is too optimistic, and the more so the more often
// a job fails.
TEST(Goodput, OfLlama3OnMoreRanks) {
  const auto& rate = kPublishedFailures.front();
  struct Row {
    double ranks, first_order, apart;
  };
  for (const auto& [ranks, first_order, apart] :
       {Row{1024, 0.97, 0.001}, {16384, 0.86, 0.006}, {65536, 0.68, 0.021}}) {
    const Interruptions job{kHour / (rate.per_node_hour * ranks / 8), 60, 0, 600};
    EXPECT_NEAR(job.between_s / kHour, 3.09 * 16384 / ranks, 0.005 * 16384 / ranks);
    const double between = job.between_s, period = 60 + std::sqrt(2 * (between + 600) * 60 + 60 * 60),
                 published = (period - 60) / period * between / (between + 600 + period / 2);
    EXPECT_NEAR(published, first_order, 0.005) << ranks;
    EXPECT_LT(best(job), published) << ranks;
    EXPECT_NEAR(best(job), published, apart) << ranks;
  }
}

// Simulates failures one by one and returns the share of the wall time that is kept. After each start, a job
// reads a checkpoint, computes and writes until a failure strikes. Then it is restarted.
double simulated(const Interruptions& job, double interval_s, int num_failures, std::mt19937& random) {
  std::exponential_distribution<double> draw(1 / job.between_s);
  double kept = 0, wall_s = 0;
  for (int i = 0; i < num_failures; ++i) {
    const double up_s = draw(random);
    kept += std::floor(std::max(0.0, up_s - job.read_s) / (interval_s + job.write_s));
    wall_s += up_s + job.restart_s;
  }
  return kept * interval_s / wall_s;
}

// The 81 jobs fail once a day to once every quarter of an hour.
TEST(Goodput, IsThatOfSimulatedFailures) {
  std::mt19937 random(7);
  double least = 1, most = 0;
  for (const double between_s : {15 * kMinute, 3 * kHour, 24 * kHour})
    for (const double write_s : {1.0, 60.0, 600.0})
      for (const double read_s : {0.0, 30.0, 300.0})
        for (const double restart_s : {0.0, 60.0, 1800.0}) {
          const Interruptions job{between_s, write_s, read_s, restart_s};
          const double interval_s = daly_interval_s(job), by_formula = goodput(job, interval_s);
          EXPECT_NEAR(simulated(job, interval_s, 100'000, random) / by_formula, 1, 0.01)
              << between_s << " " << write_s << " " << read_s << " " << restart_s;
          for (const double other : {0.5, 0.8, 1.25, 2.0})
            EXPECT_LT(goodput(job, other * interval_s), by_formula * 1.001) << other;
          least = std::min(least, by_formula), most = std::max(most, by_formula);
        }
  EXPECT_LT(least, 0.2);
  EXPECT_GT(most, 0.99);
}

TEST(Goodput, RatesHaveNames) {
  EXPECT_EQ(FailureRate::parse("rsc1"), 6.50e-3 / 24);
  EXPECT_EQ(FailureRate::parse("0.5"), 0.5);
  EXPECT_STREQ(published_failures(FailureRate::parse("llama3"))->name, "llama3");
  EXPECT_EQ(published_failures(0.5), nullptr);
  for (const char* bad : {"llama4", "0", "-1", "nan", ""})
    EXPECT_THROW(FailureRate::parse(bad), UsageError) << bad;
}

// The study has ddp on the 4 ranks of one node, at 5,120 tokens/s, and a training run of the same model that
// wrote checkpoints in 1, 2 and 9 s.
class GoodputTable : public ::testing::Test {
 protected:
  static StudyData studied() {
    Record run = training_run("ddp", 900);
    run.samples.push_back({"checkpoint_write", 1, 3, {1, 9, 2}});
    Record point = training_record("ddp", 4, 10, 1);
    point.measures.energy_j = 4 * 300;  // 4 ranks at 300 W for one second
    return study_of({point, run});
  }
  Table table(double price = Measures::kNone) const {
    return measured_goodput_table(studies_, merge_repeats(studies_), query_, price);
  }
  static double number(const Table& table, const std::string& column) {
    return cell(table, 0, column).value.get<double>();
  }
  std::vector<StudyData> studies_ = {studied()};
  FailureQuery query_ = {.per_node_hour = 1, .restart_s = 600};
};

TEST_F(GoodputTable, FollowsFromTimedCheckpoints) {
  const Table made = table(3);
  ASSERT_EQ(made.rows.size(), 2u) << "the point, and the run";
  const Interruptions job{3600, 2, 0, 600};
  EXPECT_EQ(number(made, "failure every"), 1);
  EXPECT_EQ(number(made, "checkpoint write"), 2);
  EXPECT_NEAR(number(made, "best interval Daly"), daly_interval_s(job), 1e-9);
  EXPECT_EQ(cell(made, 0, "best interval steps").value, std::lround(daly_interval_s(job)));
  EXPECT_NEAR(number(made, "goodput"), 100 * best(job), 1e-9);
  EXPECT_NEAR(number(made, "kept tokens/s"), 5120 * best(job), 1e-6);
  const double rank_hours = 4 * 1e9 / (5120 * best(job)) / 3600;
  EXPECT_NEAR(number(made, "10^9 tokens cost"), 3 * rank_hours, 1e-6);
  EXPECT_NEAR(number(made, "10^9 tokens energy"), 0.3 * rank_hours, 1e-6);
  EXPECT_THAT(made.notes,
              ::testing::ElementsAre("Failures: 1.00 for each node and hour; 10 min to restart."));
}

TEST_F(GoodputTable, TakesWhatIsGiven) {
  query_ = {.restart_s = 0, .write_s = 60, .read_s = 30, .watts = 700};
  const Table made = table();
  const Interruptions job{kHour / kPublishedFailures.front().per_node_hour, 60, 30, 0};
  EXPECT_NEAR(number(made, "goodput"), 100 * best(job), 1e-9);
  EXPECT_NEAR(number(made, "10^9 tokens energy"), 0.7 * 4 * 1e9 / (5120 * best(job)) / 3600, 1e-6);
  EXPECT_THAT(made.notes.front(), ::testing::HasSubstr("as Llama 3, 419 unplanned interruptions"));
}

TEST_F(GoodputTable, NeedsATimedCheckpoint) {
  studies_[0].records.pop_back();
  EXPECT_THROW(table(), UsageError);
  query_.write_s = 60;
  EXPECT_EQ(table().rows.size(), 1u);
  query_ = {};
  EXPECT_TRUE(table().rows.empty()) << "nobody asked";
}

// The error names what is missing. The time to write a checkpoint is not missing here, because it is given.
TEST_F(GoodputTable, NeedsTraining) {
  query_.write_s = 60;
  studies_ = {study_of({collective_record("all_reduce", 2, 8, true, 1e-5)})};
  try {
    table();
    FAIL() << "a table of collectives";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("hold no training point with a result"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("checkpoint_write")));
  }
}

}  // namespace
}  // namespace shardmark

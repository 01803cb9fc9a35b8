// RANKS 1 2 3
// Tests the collective workload: results are verified, operations are timed one by one, and bandwidths follow
// the definitions of nccl-tests. Also tests the statistics that both workloads share.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "comm/verification.h"
#include "schema/step_statistics.h"
#include "specs/specs.h"
#include "specs/tokens.h"
#include "strategies/choice_kinds.h"
#include "sweep/workloads/workload.h"

namespace shardmark {
namespace {

Choice experts_of(const std::string& options) {
  return resolve(choice_from_text("experts(" + options + ")"), parts_kind().options("experts"), "parts");
}

class CollectiveWorkload : public ::testing::Test {
 protected:
  Record measure(const CollectivePoint& collective, int num_steps) {
    Record record;
    record.point.workload = "collective";
    record.point.collective = collective;
    const auto workload =
        make_collective({record.point, world_, *comm_, resources_, references_, heartbeat_});
    workload->allocate();
    check_ = workload->verify();
    EXPECT_EQ(workload->phases(), std::vector<std::string>{"step"});
    workload->begin_window();
    for (int i = 0; i < num_steps; ++i) workload->step();
    const auto rows = workload->end_window();
    EXPECT_EQ(rows.size(), 1);
    EXPECT_EQ(rows[0].size(), static_cast<size_t>(num_steps));
    for (const double step_s : rows[0]) EXPECT_GT(step_s, 0);
    record.samples.push_back({"step", world_.size(), num_steps, world_.gather(rows[0])});
    workload->collect(record);
    summarize(record);
    if (world_.rank() == 0) workload->derive(record);
    return record;
  }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ = make_communicator("pt2pt", world_, at::kCPU);
  Resources resources_;
  ReferenceCache references_;
  HeartbeatPage page_{};
  Heartbeat heartbeat_{page_};
  Check check_;
};

TEST_F(CollectiveWorkload, EveryRowIsVerifiedAndTimed) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    const Record record =
        measure({row.name, "float32", row.reduces ? "sum" : "none", 120000, row.in_place}, 7);
    EXPECT_FALSE(check_.wrong) << row.name << ": " << check_.text;
    EXPECT_EQ(record.measures.num_wrong, 0);
    EXPECT_EQ(record.measures.num_operations, 1);
    if (world_.rank() != 0) continue;
    const Measures& m = record.measures;
    EXPECT_EQ(m.num_steps, 7);
    EXPECT_DOUBLE_EQ(m.algbw_gb_s, 120000 / m.step_s / 1e9);
    EXPECT_DOUBLE_EQ(m.busbw_gb_s, m.algbw_gb_s * row.busbw.of(world_.size()));
    EXPECT_DOUBLE_EQ(m.traffic_bytes, m.predicted_traffic_bytes) << row.name;
    EXPECT_GE(m.peak_bytes, 120000);
  }
}

// With uneven parts, the bus bandwidth is the data that the busiest rank exchanges with others, divided by
// the time of the operation.
TEST_F(CollectiveWorkload, RatesPartsByWhatGoesOverTheBusiestLink) {
  const std::string path = ::testing::TempDir() + "counts-" + std::to_string(getppid()) + "-" +
                           std::to_string(world_.size()) + ".csv";
  const int n = world_.size();
  const auto bus_bytes = [&](const std::function<int(int from, int to)>& count) {
    if (world_.rank() == 0) {
      std::ofstream file(path);
      for (int from = 0; from < n; ++from)
        for (int to = 0; to < n; ++to) file << count(from, to) << (to + 1 == n ? "\n" : ",");
    }
    world_.barrier();
    CollectivePoint point{"all_to_all_v", "float32", "none", 120000, false};
    point.parts = "counts(file=\"" + path + "\")";
    const Record record = measure(point, 3);
    world_.barrier();
    EXPECT_FALSE(check_.wrong) << check_.text;
    return record.measures.busbw_gb_s * record.measures.step_s * 1e9;
  };
  const double nothing = bus_bytes([](int from, int to) { return from == to ? 1 : 0; });
  const double all = n == 1 ? 0 : bus_bytes([&](int from, int to) { return to == (from + 1) % n ? 1 : 0; });
  const double equal = bus_bytes([](int, int) { return 1; });
  if (world_.rank() != 0) return;
  std::filesystem::remove(path);
  EXPECT_EQ(nothing, 0);
  EXPECT_NEAR(all, n == 1 ? 0 : 120000, 1e-6);
  EXPECT_NEAR(equal, 120000.0 * (n - 1) / n, 1e-6);
}

TEST_F(CollectiveWorkload, CountsWhatIsMovedInWholeParts) {
  const Record record = measure({"all_gather", "float64", "none", 1000, false}, 3);
  if (world_.rank() != 0) return;
  const int64_t moved = 1000 / 8 / world_.size() * world_.size() * 8;
  EXPECT_DOUBLE_EQ(record.measures.algbw_gb_s, static_cast<double>(moved) / record.measures.step_s / 1e9);
}

// Tokens go to the ranks of their experts and come back, each exactly as it should be; what was moved is
// counted as the formula says.
TEST_F(CollectiveWorkload, DispatchAndCombineAreVerifiedAndRated) {
  constexpr int64_t kWidth = 40, kTokens = 50;
  for (const std::string operation : {"dispatch", "combine"})
    for (const std::string routing :
         {"balanced", "zipf(exponent=1.5)", "hot(experts=1, share=0.25)", "hot(experts=4, share=0)"})
      for (const std::string once_per : {"copy", "rank", "node"})
        for (const std::string dtype : {"float32", "float64", "bfloat16", "float16"}) {
          CollectivePoint point{operation, dtype, "none", 0, false};
          const int64_t token_bytes = kWidth * specs::dtype_bytes(dtype);
          point.bytes = kTokens * token_bytes;
          const Choice parts =
              experts_of("width=40, experts=12, top_k=4, routing=" + routing + ", once_per=" + once_per);
          point.parts = to_text(parts);
          const Record record = measure(point, 2);
          EXPECT_FALSE(check_.wrong) << operation << " " << dtype << " " << point.parts << ": "
                                     << check_.text;
          EXPECT_EQ(record.measures.num_wrong, 0);
          if (world_.rank() != 0) continue;
          const Measures& m = record.measures;
          const specs::TokenTraffic rows =
              token_traffic(specs::TokenExchange(parts), world_.size(), world_.size(), kTokens);
          EXPECT_DOUBLE_EQ(m.traffic_bytes, m.predicted_traffic_bytes) << operation << " " << point.parts;
          EXPECT_DOUBLE_EQ(m.traffic_bytes, rows.moved * static_cast<double>(token_bytes));
          EXPECT_DOUBLE_EQ(m.algbw_gb_s * m.step_s * 1e9, static_cast<double>(rows.logical * token_bytes));
          EXPECT_DOUBLE_EQ(m.busbw_gb_s * m.step_s * 1e9, static_cast<double>(rows.exchanged * token_bytes));
        }
}

// A transport that gives each rank the parts of its senders in the wrong order, or one element of another
// value.
class Damaging final : public Communicator {
 public:
  enum class Damage { order, value };
  Damaging(Communicator& inner, Damage damage) : inner_(inner), damage_(damage) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  at::Device device() const override { return inner_.device(); }
  std::string transport() const override { return inner_.transport(); }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return inner_.allocate(numel, dtype); }

 private:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    return inner_.split(color, key, use);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    inner_.run(call);
    if (damage_ == Damage::value)
      call.out.narrow(0, call.out.numel() - 1, 1).add_(1);
    else
      call.out.copy_(call.out.roll(call.parts->between(0, inner_.rank())));
    return nullptr;
  }
  void do_progress() override {}

  Communicator& inner_;
  Damage damage_;
};

TEST_F(CollectiveWorkload, WrongTokensAreFound) {
  for (const auto damage : {Damaging::Damage::order, Damaging::Damage::value})
    for (const std::string operation : {"dispatch", "combine"}) {
      if (world_.size() == 1 && damage == Damaging::Damage::order) continue;
      Point point;
      point.workload = "collective";
      point.collective = {operation, "float32", "none", 50 * 40 * 4, false};
      point.collective.parts = to_text(experts_of("width=40, experts=12, top_k=4"));
      Damaging damaging(*comm_, damage);
      const auto workload = make_collective({point, world_, damaging, resources_, references_, heartbeat_});
      workload->allocate();
      EXPECT_TRUE(workload->verify().wrong) << operation;
    }
}

TEST(BusbwFactor, IsThatOfNcclTests) {
  const std::map<std::string, double> on_four_ranks = {
      {"all_reduce", 1.5}, {"reduce_scatter", 0.75}, {"all_gather", 0.75}, {"all_to_all", 0.75},
      {"gather", 0.75},    {"scatter", 0.75},        {"broadcast", 1},     {"reduce", 1},
      {"send_recv", 1}};
  for (const auto& [name, factor] : on_four_ranks)
    EXPECT_DOUBLE_EQ(specs::collective(name).busbw.of(4), factor) << name;
}

TEST(Statistics, StepTimeIsTheMedianOfTheSlowestRank) {
  Record record;
  record.samples.push_back({"step",
                            2,
                            5,
                            {1, 2, 3, 4, 5,     // samples of rank 0
                             2, 1, 9, 1, 1}});  // samples of rank 1
  summarize(record);
  const Measures& m = record.measures;
  EXPECT_EQ(worst_of_ranks(record.samples[0]), (std::vector<double>{2, 2, 9, 4, 5}));
  EXPECT_DOUBLE_EQ(m.step_s, 4);
  EXPECT_FALSE(m.has_interval());  // fewer than 6 steps
  EXPECT_EQ(m.slowest_rank, 0);
  EXPECT_DOUBLE_EQ(m.slowest_share, 0.6);
  EXPECT_EQ(m.num_steps, 5);
}

TEST(Statistics, NothingMeasuredSaysNothing) {
  Record record;
  summarize(record);
  EXPECT_TRUE(std::isnan(record.measures.step_s));
  EXPECT_EQ(record.measures.slowest_rank, -1);
}

}  // namespace
}  // namespace shardmark

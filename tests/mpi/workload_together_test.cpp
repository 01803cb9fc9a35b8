// RANKS 2 3
// Tests a collective that runs at the same time as a load. All ranks agree on how often each is repeated. The
// record stores these counts, and the next repetition uses them.
#include <gtest/gtest.h>

#include <algorithm>

#include "sweep/workloads/workload.h"

namespace shardmark {
namespace {

class TogetherPoint : public ::testing::Test {
 protected:
  Record measure(const std::string& beside, int64_t bytes, RoundCounts round = {}) {
    Record record;
    record.point.workload = "collective";
    record.point.collective = {"all_reduce", "float32", "sum", bytes, true, "equal", beside};
    const auto workload = make_together(
        {record.point, world_, *comm_, resources_, references_, heartbeat_, /*trace=*/"", round});
    workload->allocate();
    const Check check = workload->verify();
    EXPECT_FALSE(check.wrong) << check.text;
    workload->begin_window();
    for (int i = 0; i < 3; ++i) workload->step();
    const auto rows = workload->end_window();
    EXPECT_EQ(rows.size(), workload->phases().size());
    for (const auto& row : rows) {
      EXPECT_EQ(row.size(), 3u);
      for (const double seconds : row) EXPECT_GT(seconds, 0);
    }
    workload->collect(record);
    return record;
  }
  void expect_same_on_all_ranks(int64_t count) {
    const auto counts = world_.gather(std::vector<double>{static_cast<double>(count)});
    for (const double other : counts) EXPECT_EQ(other, counts.front());
  }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ = make_communicator("pt2pt", world_, at::kCPU);
  Resources resources_;
  ReferenceCache references_;
  HeartbeatPage page_{};
  Heartbeat heartbeat_{page_};
};

TEST_F(TogetherPoint, FindsCountsThatAllRanksShare) {
  for (const char* beside : {"matmul(m=64, n=64, k=64, dtype=float32)", "copy(bytes=65536)",
                             "collective(operation=all_gather, bytes=4096)"})
    for (const int64_t bytes : {64, 1 << 20}) {
      const Measures m = measure(beside, bytes).measures;
      EXPECT_GE(m.num_load_units, kLeastUnits) << beside;
      EXPECT_GE(m.num_operations, 1) << beside;
      expect_same_on_all_ranks(m.num_load_units);
      expect_same_on_all_ranks(m.num_operations);
    }
}

TEST_F(TogetherPoint, KeepsTheCountsOfAnEarlierRepetition) {
  const Measures m = measure("copy(bytes=65536)", 4096, {7, 13}).measures;
  EXPECT_EQ(m.num_load_units, 7);
  EXPECT_EQ(m.num_operations, 13);
}

}  // namespace
}  // namespace shardmark

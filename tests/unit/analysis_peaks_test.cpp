// One peak for each machine and precision, though every start of the ranks measures its own.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis_fixture.h"

namespace shardmark {
namespace {

bool has_warning(const MergedPoint& merged, const std::string& kind) {
  return std::any_of(merged.warnings.begin(), merged.warnings.end(),
                     [&](const Warning& warning) { return warning.kind == kind && !warning.excludes; });
}

TEST(Peaks, TheBestOneCountsForAll) {
  std::vector<Record> records = {training_record("ddp", 1, 4, 0.1), training_record("ddp", 2, 4, 0.1),
                                 training_record("zero3", 2, 4, 0.1)};
  records[0].measures.peak_flops = 1e12;
  records[1].measures.peak_flops = 0.95e12;
  records[2].measures.peak_flops = 0.5e12;  // something else ran then
  for (Record& record : records)
    record.measures.mfu =
        record.measures.flops_per_step / record.measures.step_s / record.measures.peak_flops;
  records.push_back(records[0]);
  records[3].point.training.precision = "bf16";
  records[3].id = point_id(records[3].point);
  records[3].measures.peak_flops = 8e12;
  for (const MergedPoint& merged : merge_repeats({study_of(records)})) {
    const Measures& m = merged.measures;
    const bool is_bf16 = merged.point.training.precision == "bf16";
    EXPECT_EQ(m.peak_flops, is_bf16 ? 8e12 : 1e12);
    EXPECT_EQ(has_warning(merged, "low peak"), merged.point.training.strategy.name == "zero3");
    if (is_bf16) continue;
    EXPECT_DOUBLE_EQ(m.mfu, m.flops_per_step / m.step_s / 1e12);
  }
}

}  // namespace
}  // namespace shardmark

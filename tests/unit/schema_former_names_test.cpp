// Studies of earlier versions are read with the former names of columns. The two files here have schema 1.4
// and older.
#include <gtest/gtest.h>

#include <cmath>

#include "schema/fields.h"
#include "schema/study.h"

namespace shardmark {
namespace {

// Returns the number of training points that have the predictions of their strategy's program.
int num_with_predictions(const std::string& path) {
  int count = 0;
  for (const Record& record : read_study(path, Load::without_samples).records) {
    const Measures& m = record.measures;
    if (record.point.workload != "training" || record.outcome != Outcome::ok) continue;
    count += m.predicted_parameter_bytes > 0 && m.predicted_gradient_bytes > 0 &&
                     m.predicted_traffic_bytes >= 0 && !std::isnan(m.predicted_transient_bytes)
                 ? 1
                 : 0;
  }
  return count;
}

TEST(FormerNames, OfAPublishedStudy) {
  EXPECT_GT(num_with_predictions(SHARDMARK_TEST_DATA "/studies/shaped.h5"), 20);
}

TEST(FormerNames, OfAJournal) { EXPECT_GT(num_with_predictions(SHARDMARK_TEST_DATA "/studies/small.h5"), 4); }

// A former name must not be the name of a current column, or it would be read as both.
TEST(FormerNames, AreNamesOfNothingElse) {
  Record record;
  visit_fields(record, [&](std::string_view name, auto, auto, auto&) {
    for (const Since& since : kSince) {
      const std::string former = since.former == nullptr ? "" : since.former;
      EXPECT_NE(name, former);
    }
  });
}

}  // namespace
}  // namespace shardmark

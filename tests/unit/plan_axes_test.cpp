// Every row of the table of axes (schema/axes.h) works everywhere: a suite can list and exclude its values, a
// flag can replace them, the point's identity, the study, the tables and the page contain the axis, and the
// README documents it.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/frame/suite_of.h"
#include "analysis/frame/training_columns.h"
#include "plan/axis_values.h"
#include "plan/suite.h"
#include "plan/training_run.h"
#include "schema/json.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

// Returns a suite that has a single point apart from the values of this axis.
std::string suite_with(const AxisRow& axis, const std::string& values) {
  const bool collective = workload_of(axis) == std::string("collective");
  std::map<std::string, std::string> keys = {{"ranks", "2"}};
  if (collective)
    keys.insert({{"operation", "all_reduce"}, {"bytes", "8"}});
  else
    keys.insert({{"model", "mlp"}, {"strategy", "ddp"}, {"batch_size", "4"}});
  if (axis.key == std::string("global_batch")) keys.erase("batch_size");
  if (axis.key == std::string("parts")) keys["operation"] = "all_to_all_v";
  keys[axis.key] = values;
  std::string text = collective ? "collectives:\n" : "training:\n";
  for (const auto& [key, value] : keys) text += "  " + key + ": " + value + "\n";
  return text;
}

// Returns two values of the axis, as a suite and a flag write them.
std::vector<std::string> two_values(const AxisRow& axis) {
  if (axis.key == std::string("data")) return {"synthetic", "cifar10"};  // the other data sets need a file
  if (std::holds_alternative<TrueOrFalse>(axis.accepted)) return {"true", "false"};
  if (std::holds_alternative<Variables>(axis.accepted)) return {"NCCL_ALGO=Ring", "NCCL_ALGO=Tree"};
  if (axis.key == std::string("parts")) return {"equal", "hot"};  // `counts` needs a file
  if (std::holds_alternative<Words>(axis.accepted)) return {words_of(axis.key)[0], words_of(axis.key)[1]};
  if (std::holds_alternative<Choices>(axis.accepted)) {
    const auto& names = kind_of(axis.key).names;
    return {names[0], names[1]};
  }
  return {"8", "16"};
}

std::vector<Point> points_of(const std::string& suite, const Overrides& overrides = {}) {
  return parse_suite(suite, "s.yaml", overrides).points;
}

// Calls check(axis, values, points) for each axis, with the two points of its two values.
template <class Check>
void for_each_row(Check check) {
  for_each_axis([&](const AxisRow& axis) {
    SCOPED_TRACE(axis.key);
    const auto values = two_values(axis);
    const auto points = points_of(suite_with(axis, "[" + values[0] + ", " + values[1] + "]"));
    ASSERT_EQ(points.size(), 2u);
    check(axis, values, points);
  });
}

Record record_of(const Point& point) {
  Record record;
  record.point = point;
  return record;
}

TEST(Axes, AreListedExcludedAndOverridden) {
  for_each_row([](const AxisRow& axis, const auto& values, const auto& points) {
    EXPECT_NE(value_of(axis, points[0]), value_of(axis, points[1]));

    const std::string both = suite_with(axis, "[" + values[0] + ", " + values[1] + "]");
    const auto left = points_of(both + "exclude:\n  " + axis.key + ": " + values[0] + "\n");
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(value_of(axis, left[0]), value_of(axis, points[1]));

    Overrides overrides;
    overrides.axes[axis.key] = {values[1]};
    const auto replaced = points_of(suite_with(axis, values[0]), overrides);
    ASSERT_EQ(replaced.size(), 1u);
    EXPECT_EQ(value_of(axis, replaced[0]), value_of(axis, points[1]));
  });
}

TEST(Axes, AreInTheIdentityTheStudyAndThePage) {
  for_each_row([](const AxisRow& axis, const auto&, const auto& points) {
    EXPECT_NE(point_id(points[0]), point_id(points[1]));
    if (!axis.is_stored()) return;
    EXPECT_NE(to_json(record_of(points[0])).at(axis.key), to_json(record_of(points[1])).at(axis.key));
    for (const Point& point : points)
      EXPECT_EQ(point_id(points_of(suite_of(point)).at(0)), point_id(point)) << suite_of(point);
    if (axis.phrase != nullptr) {
      EXPECT_NE(to_text(points[0]), to_text(points[1]));
    }
  });
}

// The settings of a training point are columns, unless a table names them on its own.
TEST(Axes, AreColumnsOfTables) {
  const std::set<std::string> of_each_table = {"strategy", "batch_size", "global_batch"};
  for_each_row([&](const AxisRow& axis, const auto&, const auto& points) {
    if (workload_of(axis) != std::string("training")) return;
    ASSERT_NE(axis.heading == nullptr, of_each_table.count(axis.key) == 0);
    if (axis.heading == nullptr) return;
    const std::vector<MergedPoint> merged = {as_merged(record_of(points[0]), {}),
                                             as_merged(record_of(points[1]), {})};
    const TrainingColumns columns(merged);
    const auto names = TrainingColumns::family_columns();
    const auto at = static_cast<size_t>(
        std::find_if(names.begin(), names.end(), [&](const Column& c) { return c.name == axis.heading; }) -
        names.begin());
    ASSERT_LT(at, names.size());
    EXPECT_NE(columns.family_cells(merged[0]).at(at).text, columns.family_cells(merged[1]).at(at).text);
  });
}

// But for `save`: a run has --checkpoint.
TEST(Axes, OfATrainingBlockAreKeysOfATrainingRun) {
  for (const AxisRow& axis : kTrainingAxes) {
    const std::string key = axis.key, text = key + ": " + two_values(axis)[1] + "\n";
    if (key == "save")
      EXPECT_THROW(parse_training_run(text, "r.yaml"), UsageError);
    else
      EXPECT_EQ(parse_training_run(text, "r.yaml").axes.count(key), 1u) << key;
  }
}

TEST(Axes, AreDocumented) {
  const std::string page = read_text(SHARDMARK_SOURCE_DIR "/suites/README.md");
  for_each_axis([&](const AxisRow& axis) {
    EXPECT_NE(page.find(std::string("\n| `") + axis.key + "` | "), std::string::npos) << axis.key;
  });
}

}  // namespace
}  // namespace shardmark

// Every curve, fit and row about a series must belong to one study if two studies that differ in exactly one
// axis are reported together. Otherwise a curve would join points that cannot be compared. All axes are
// tried, and everything else that distinguishes points.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "analysis/frame/launches.h"
#include "analysis/overview/overview.h"
#include "analysis/plots/plots.h"
#include "analysis/report.h"
#include "analysis_fixture.h"
#include "schema/axes.h"

namespace shardmark {
namespace {

Record training(int64_t ranks, int64_t batch, int64_t sequence, double step_s) {
  Record record = training_record("ddp", ranks, batch, step_s, 0.1 * step_s);
  record.point.training.model.options["sequence"] = sequence;
  return record;
}

// Returns weak and strong scaling, two lengths of sequences, a batch that does not fit, and collectives of
// several sizes. The other study is slower and has additional points, so any rule that prefers some points
// over others would join points of both.
std::vector<Record> records(bool other) {
  const double slower = other ? 3.1 : 1;
  std::vector<Record> all;
  for (const int64_t ranks : {1, 2, 4, 8, 16, 32}) {
    if (ranks == 32 && !other) continue;
    const auto n = static_cast<double>(ranks);
    all.push_back(training(ranks, 4, 128, slower * (1 + 0.05 * n)));
    all.push_back(training(ranks, 2, 256, slower * (0.9 + 0.04 * n)));
    if (ranks > 1) all.push_back(training(ranks, 192 / ranks, 128, slower * (20 / n + 0.3)));
  }
  all.push_back(training(2, other ? 512 : 1024, 128, 1));
  all.back().outcome = Outcome::out_of_memory;
  for (const char* operation : {"all_reduce", "reduce_scatter"})
    for (const int64_t bytes : {1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26})
      if (bytes < 1 << 26 || other) {
        const double worse =
            bytes == 1 << 14 ? 20 : 1;  // this size is much slower than its neighbours, which is a finding
        all.push_back(collective_record(operation, 4, bytes, true,
                                        slower * worse * (1e-5 + static_cast<double>(bytes) / 1e9)));
      }
  return all;
}

StudyData study(bool other, const std::function<void(Record&)>& change) {
  std::vector<Record> all = records(other);
  for (Record& record : all) {
    if (other) change(record);
    record.id = point_id(record.point);
  }
  StudyData made = study_of(std::move(all), other ? "other.h5" : "one.h5");
  made.environment.world_ranks = 32;
  made.environment.rank_nodes.assign(32, "node1");
  return made;
}

// Joins the values that programs read. The names that people read depend on what else is in the report.
std::string values_of(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells)
    cell.value.visit([&]<class T>(const T& value) {
      if constexpr (!std::is_same_v<T, std::monostate>) text += fmt::format("{} | ", value);
    });
  return text;
}

// Adds every curve that is drawn as a line, as numbers. Rows of bars are single points, and the ideal curve
// compares series, so both are left out.
void add_curves(const std::vector<StudyData>& studies, std::set<std::string>& all) {
  for (const Plot& plot : make_plots(studies)) {
    if (!plot.rows.empty()) continue;
    for (const Curve& curve : plot.curves) {
      if (curve.style == kNeutral || curve.points.size() < 2) continue;
      std::string text = "plot " + plot.title + ":";
      for (const PlotPoint& point : curve.points)
        text += fmt::format(" ({:.9g}, {:.9g})", point.over, point.value);
      all.insert(text);
    }
  }
}

// Returns the rows of all tables that describe a series, and all curves.
std::set<std::string> series_in(const std::vector<StudyData>& studies) {
  const std::set<std::string> of_series = {"scaling.weak",    "scaling.strong",           "scaling.limits",
                                           "scaling_laws",    "scaling_laws.quality",     "memory.largest",
                                           "collective_fits", "collective_fits.held_out", "problems"};
  std::set<std::string> all;
  const ReportData data(studies);
  visit_tables(data, {}, [&](Table&& table) {
    if (!of_series.contains(table.key)) return;
    for (const auto& row : table.rows)
      if (const std::string text = values_of(row);
          (table.key != "problems" || row.front().text == "results to check") &&
          text.find("as long as in place") == std::string::npos)
        all.insert(table.key + ": " +
                   text);  // this finding compares in place with out of place, so it is about two series
  });
  for (const OverviewGroup& group : collectives_overview(studies, data.points).groups)
    for (const auto& row : group.rows) all.insert("overview: " + values_of(row));
  add_curves(studies, all);
  return all;
}

// Checks that every series of the joint report is also in the report of one study alone.
void expect_no_common_series(const StudyData& one, const StudyData& other) {
  std::set<std::string> apart = series_in({one});
  EXPECT_GE(apart.size(), 10u);
  apart.merge(series_in({other}));
  for (const std::string& series : series_in({one, other})) EXPECT_TRUE(apart.contains(series)) << series;
  EXPECT_EQ(merge_repeats({one, other}).size(), merge_repeats({one}).size() + merge_repeats({other}).size());
}

void set_other(const AxisRow& axis, Point& point) {
  const std::string_view key = axis.key;
  visit_member(axis, point, [&]<class T>(T& member) {
    if constexpr (std::is_same_v<T, bool>)
      member = !member;
    else if constexpr (std::is_same_v<T, std::string>)
      member = "other";
    else if constexpr (!std::is_same_v<T, Choice>)
      member += 1;
    else if (key == "model")
      member.options["layers"] = 5;
    else if (key == "strategy")
      member = resolved_strategy("fsdp");
    else
      member = {"other"};
  });
}

TEST(Series, HoldNoTwoPointsThatDifferInAnAxisThatTheyDoNotRunOver) {
  int num_axes = 0;
  for_each_axis([&](const AxisRow& axis) {
    const std::string_view key = axis.key;
    if (!axis.is_stored() || key == "ranks" || key == "bytes") return;  // series run over these axes
    SCOPED_TRACE(axis.key);
    StudyData one = study(false, {}),
              other = study(true, [&](Record& record) { set_other(axis, record.point); });
    for (StudyData* study : {&one, &other})  // points of the other workload would count as repeats
      std::erase_if(study->records, [&](const Record& record) {
        // The largest batch is found by a search over batch sizes.
        const bool is_largest = key == "batch_size" && record.outcome == Outcome::out_of_memory;
        return is_largest || !has_axis(record.point, axis);
      });
    std::set<std::string> ids;
    for (const Record& record : one.records) ids.insert(content_id(record.point));
    for (const Record& record : other.records)
      EXPECT_FALSE(ids.contains(content_id(record.point))) << "compare joins them";
    expect_no_common_series(one, other);
    ++num_axes;
  });
  EXPECT_GT(num_axes, 20);
}

TEST(Series, HoldPointsOfOneSeedMachineAndTransport) {
  const StudyData one = study(false, {});
  const auto change_nothing = [](Record&) {};
  {
    SCOPED_TRACE("seed");
    expect_no_common_series(one, study(true, [](Record& record) { record.point.seed = 2; }));
  }
  StudyData machine = study(true, change_nothing), transport = machine;
  machine.environment.devices.assign(4, "Another CPU");
  transport.environment.transport = "nccl";
  for (const auto& [name, other] : {std::pair("machine", machine), {"transport", transport}}) {
    SCOPED_TRACE(name);
    expect_no_common_series(one, other);
  }
}

// A series that continues from one node to several is either over ranks, or over nodes with the same number
// of ranks.
TEST(Series, OverNodesHoldEachNumberOfRanksOnce) {
  const std::vector<StudyData> one = {study(false, {})};
  StudyData spread = study(true, [](Record&) {});
  for (size_t rank = 1; rank < 32; rank += 2) spread.environment.rank_nodes[rank] = "node2";
  const MergedPoints points = merge_repeats({one.front(), spread});
  std::set<Span> spans;
  for (const ScalingSeries& series : scaling_series(points)) {
    std::set<int64_t> ranks;
    for (const auto& [merged, units, efficiency, speed_up, karp_flatt] : series.points) {
      EXPECT_TRUE(ranks.insert(merged->point.ranks).second) << unit_text(series);
      EXPECT_TRUE(series.span != Span::node || merged->nodes == 1);
      EXPECT_TRUE(series.span != Span::nodes || merged->ranks_per_node == series.ranks_per_unit);
    }
    spans.insert(series.span);
  }
  EXPECT_EQ(spans.size(), 3u);
}

}  // namespace
}  // namespace shardmark

// Tests the HTML page: its size and its texts, that nothing in a study is interpreted as markup, that its
// suites produce the same points, and that it works in a real browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/frame/suite_of.h"
#include "analysis/page/page.h"
#include "analysis/page/parts.h"
#include "analysis/plots/plots.h"
#include "analysis/render/svg.h"
#include "analysis/report.h"
#include "plan/plan.h"
#include "plots_fixture.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile =
    "</script></pre><img src=x onerror='window.hit=1'>\"&<script>window.hit=1</script>";

// Returns 200 points. Every text that the page shows contains markup.
StudyData hostile_study() {
  StudyData study = study_of_200_points();
  Environment& e = study.environment;
  study.path = std::string("results/") + kHostile;
  for (std::string* text :
       {&e.command_line, &e.revision, &e.suite_text, &e.suite_path, &e.started, &e.transport})
    *text = kHostile;
  e.nodes = {kHostile};
  e.devices[0] = kHostile;
  (*e.versions)[kHostile] = kHostile;
  for (Record& record : study.records) {
    record.reason = kHostile;
    record.started = kHostile;
    record.point.training.data.options["files"] = kHostile;
    if (record.point.workload == "training" && record.point.ranks == 1)
      record.point.training.model = {std::string("model") + kHostile, {{kHostile, kHostile}}};
    if (record.point.workload == "collective" && record.point.ranks == 8)
      record.point.collective.dtype = kHostile;
  }
  return study;
}

std::string page_of(const std::vector<StudyData>& studies) { return make_page(ReportData(studies)); }

TEST(Page, OfTwoHundredPointsIsSmall) {
  const std::string page = page_of({study_of_200_points()});
  RecordProperty("bytes", std::to_string(page.size()));
  EXPECT_LT(page.size(), 3e6);
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
}

TEST(Page, NeedsNoNetwork) {
  const std::string page = page_of({study_of_200_points()});
  for (const char* word : {"http:", "https:", "src=", "@import", "url(\"", "url('"})
    EXPECT_THAT(page, Not(HasSubstr(word))) << word;
}

TEST(Page, TakesTextsAsTexts) {
  const std::string page = page_of({hostile_study()});
  EXPECT_EQ(times_in(page, "<script"), 1u);
  EXPECT_EQ(times_in(page, "</script"), 1u);
  EXPECT_EQ(times_in(page, "<img"), 0u);
  EXPECT_GT(times_in(page, "&lt;img src=x onerror=&#39;window.hit=1&#39;&gt;&quot;&amp;"), 200u);
}

TEST(Page, OfAStudyWithoutResultsSaysSo) {
  Record failed = training_record("ddp", 2, 4, 0.1);
  failed.outcome = Outcome::failed;
  failed.reason = "rank 1 died";
  const std::string page = page_of({study_of({failed})});
  EXPECT_THAT(page,
              HasSubstr("1 point: 1 failed, on 4 ranks of 1 node (Some CPU, 1 thread per rank) over mpi."));
  EXPECT_THAT(page, HasSubstr("rank 1 died"));
  EXPECT_THAT(page_of({study_of({})}), HasSubstr("0 points, on"));
}

// A damaged or foreign study may contain such numbers. The page is made without a crash and shows no "nan" or
// "inf".
TEST(Page, OfNonsenseIsStillAPage) {
  std::vector<Record> records;
  for (const double value : {0.0, -1.0, 1e300, 1e-300, std::nan(""), static_cast<double>(INFINITY)}) {
    for (const int64_t ranks : {1, 2, 4, 8}) {
      records.push_back(training_record("ddp", ranks, 4, 0.1));
      visit_fields(records.back(), [&]<class T>(auto, auto, auto, T& member) {
        if constexpr (std::is_same_v<T, double>) member = value;
      });
      records.back().samples.push_back({"step", 1, 3, {value, value, 0.1}});
      records.back().point.seed = static_cast<int64_t>(records.size());
    }
    records.push_back(collective_record("all_reduce", 2, std::isnan(value) ? 0 : 1024, true, value));
  }
  const std::string page = page_of({study_of(records)});
  EXPECT_THAT(page, HasSubstr("</html>"));
  for (const char* word : {">nan<", "'nan'", "NaN ", "'inf'", "nan ms", "inf ms", "inf min", "inf samples"})
    EXPECT_THAT(page, Not(HasSubstr(word)));
}

TEST(Page, ShowsSoManyPlotsOfAKind) {
  std::vector<Record> records;
  for (int64_t batch = 1; batch <= 30; ++batch)
    for (const char* strategy : {"ddp", "fsdp"}) records.push_back(training_record(strategy, 2, batch, 0.1));
  const std::string page = page_of({study_of(records)});
  EXPECT_EQ(times_in(page, "id='plot_phases_"), 24u);
  EXPECT_THAT(page, HasSubstr("left out here: 6; report --plots DIR draws every one."));
}

TEST(Page, DrawsMarksWhereTheirValuesAre) {
  Plot plot{"k", "t", "T", "a", "", {"x", Scale::log2}, {"y"}, {}, {{"c", Form::measured, 0, {}}}};
  plot.curves[0].points = {{1, 10, 5, 20, "one"}, {2, 20, 5, 20, "two"}, {4, 30, 5, 40, "<four>"}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(times_in(svg, "class='mark "), 3u);
  EXPECT_THAT(svg, HasSubstr("<title>c: &lt;four&gt;</title>"));
  std::vector<double> x, y;
  for (size_t at = 0; (at = svg.find("<circle cx='", at)) != std::string::npos; ++at) {
    x.push_back(std::stod(svg.substr(at + 12)));
    y.push_back(std::stod(svg.substr(svg.find("cy='", at) + 4)));
  }
  ASSERT_EQ(x.size(), 4u);                      // the first mark belongs to the legend
  EXPECT_NEAR(x[2] - x[1], x[3] - x[2], 0.15);  // 1, 2, 4 on a logarithmic axis
  EXPECT_NEAR(y[1] - y[2], y[2] - y[3], 0.15);  // 10, 20, 30 on a linear axis that points up
  EXPECT_GT(y[1], y[2]);
}

// The page offers a suite for each point. The reader of suites accepts it and produces the same point.
TEST(SuiteOf, MakesTheSamePoint) {
  int64_t num_checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDMARK_SOURCE_DIR "/suites")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::vector<Point> plan = make_plan(read_suite(entry.path().string()), {.ranks = 8});
    for (size_t i = 0; i < plan.size(); i += 1 + plan.size() / 200) {
      Point point = plan[i];
      if (!point.impossible.empty()) continue;
      point.repeat = 0;
      const std::string text = suite_of(point);
      const std::vector<Point> again = make_plan(parse_suite(text, "point.yaml"), {.ranks = 8});
      ASSERT_EQ(again.size(), 1u) << text;
      EXPECT_EQ(point_id(again[0]), point_id(point)) << entry.path() << "\n" << text;
      ++num_checked;
    }
  }
  EXPECT_GT(num_checked, 300);
}

TEST(SuiteOf, KnowsNothingOfAnotherProgramsChoices) {
  Point point = training_record("ddp", 2, 4, 0.1).point;
  point.training.model = {"future: model", {{"depth", 7}, {"on", "no"}}};
  point.transport = "odd(";
  const std::string text = suite_of(point);
  EXPECT_THAT(text, HasSubstr("model: {\"future: model\": {depth: 7, \"on\": \"no\"}}"));
  EXPECT_THAT(text, HasSubstr("transport: \"odd(\""));
}

bool succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

TEST(Page, WorksInChromium) {
  if (!succeeds("chromium --version")) GTEST_SKIP() << "no chromium: jobs/bootstrap.sh --page installs it";
  if (!succeeds("python3 --version")) GTEST_SKIP() << "no python3";
  const ScratchDirectory scratch;
  write_text(scratch / "page.html", page_of({hostile_study()}));
  const std::string script = SHARDMARK_SOURCE_DIR "/tests/peer/page_in_chromium.py";
  const std::string said = scratch / "said";
  const int status = std::system(
      ("timeout 100 python3 " + script + " " + (scratch / "page.html") + " >" + said + " 2>&1").c_str());
  EXPECT_EQ(status, 0) << read_text(said);
}

// A browser cannot handle a table of 100,000 rows. The page has the first rows of each table and says how
// many are left out.
TEST(Page, OfManyPointsSaysWhatItLeavesOut) {
  constexpr size_t kPoints = 1500;
  std::vector<Record> records;
  for (size_t i = 0; i < kPoints; ++i) {
    records.push_back(training_record("ddp", 2, 4, 0.1));
    records.back().point.seed = static_cast<int64_t>(i);
    records.back().id = point_id(records.back().point);
  }
  const std::string page = page_of({study_of(records)});
  EXPECT_NE(page.find("Left out here: the last 500 of 1,500 rows; report --table strategies prints all."),
            std::string::npos);
  EXPECT_NE(page.find("Left out here: the last 500 of 1,500 points; shardmark report --raw has all."),
            std::string::npos);
  EXPECT_EQ(times_in(page, "<summary>suite</summary>"), kMostPageRows);
  records.resize(kMostPageRows);
  EXPECT_EQ(times_in(page_of({study_of(records)}), "Left out here"), 0u);
}

}  // namespace
}  // namespace shardmark

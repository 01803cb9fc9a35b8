// The page for its readers: the answer first, sections with findings alone, tables without repeated columns,
// and what keyboards and screen readers need.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "analysis/page/page.h"
#include "analysis/page/parts.h"
#include "analysis/plots/plots.h"
#include "analysis/report.h"
#include "plots_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string page_with(const std::vector<Record>& records) {
  return make_page(ReportData({study_of(records)}));
}

std::vector<Record> two_strategies() {
  return {training_record("ddp", 2, 8, 0.1), training_record("zero3", 2, 8, 0.12)};
}

TEST(PageAnswers, ASentenceAndAPlotStandBeforeTheTables) {
  const std::string page = page_with(two_strategies());
  const size_t sentence = page.find(
      "ddp was the fastest of 2 strategies, with 100.0 ms per step; the launches do not prove this order.");
  const size_t plot = page.find("id='answer_speed_and_memory'"), table = page.find("<table");
  ASSERT_NE(sentence, std::string::npos);
  ASSERT_NE(plot, std::string::npos);
  EXPECT_LT(sentence, plot);
  EXPECT_LT(plot, table);
}

TEST(PageAnswers, OfOneStrategyThereIsNoFastest) {
  const std::string page = page_with({training_record("ddp", 2, 8, 0.1)});
  EXPECT_THAT(page, HasSubstr("ddp takes 100.0 ms per step."));
  EXPECT_THAT(page, Not(HasSubstr("fastest of 1")));
}

TEST(PageAnswers, TheStepWithoutCommunicationIsNoRival) {
  for (const double step_s : {0.08, 0.11}) {  // noise makes it slower at times
    std::vector<Record> records = two_strategies();
    records.push_back(training_record("single", 2, 8, step_s));
    EXPECT_THAT(page_with(records), HasSubstr("ddp was the fastest of 2 strategies, with 100.0 ms per step"));
  }
}

TEST(PageAnswers, OfCollectivesTheHighestBandwidth) {
  const std::string page = page_with({collective_record("all_reduce", 2, 1 << 20, true, 1e-3),
                                      collective_record("all_gather", 2, 1 << 20, true, 1e-4)});
  EXPECT_THAT(page, HasSubstr("all_gather reaches the highest bus bandwidth, 10.5 GB/s."));
}

// Their part has the plots of all sizes beside its tables.
TEST(PagePlots, OfCollectivesStandInTheirPart) {
  std::vector<Record> records;
  for (const int64_t bytes : {1 << 10, 1 << 15, 1 << 20})
    records.push_back(collective_record("all_reduce", 2, bytes, true, 1e-9 * static_cast<double>(bytes)));
  const std::string page = page_with(records);
  const size_t part = page.find("<h2 id='collectives'>");
  ASSERT_NE(part, std::string::npos);
  for (const char* key : {"id='plot_busbw'", "id='plot_latency'"}) {
    const size_t plot = page.find(key);
    EXPECT_NE(plot, std::string::npos) << key;
    EXPECT_GT(plot, part) << key;
  }
}

// The screen marks a doubtful number, and the sentence says it in words.
TEST(PageAnswers, OfADoubtfulBandwidthSayThatItIs) {
  Record doubtful = collective_record("all_gather", 2, 1 << 20, true, 1e-4);
  doubtful.measures.step_low_s = 0.1 * doubtful.measures.step_s;
  doubtful.measures.step_high_s = 10 * doubtful.measures.step_s;
  EXPECT_THAT(page_with({collective_record("all_reduce", 2, 1 << 20, true, 1e-3), doubtful}),
              HasSubstr("the highest bus bandwidth, 10.5 GB/s; its measurement has a warning."));
}

TEST(PageSections, WithoutAFindingAreALine) {
  const std::string page = page_with({training_record("ddp", 1, 8, 0.1), training_record("ddp", 2, 8, 0.11)});
  EXPECT_THAT(page, HasSubstr("<h2 id='scaling'>Scaling</h2>"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>Efficiency: where it falls below 80 %</h3>")));
  for (const char* key : {"scaling.limits", "scaling_laws", "interconnects"}) {
    EXPECT_THAT(page, Not(HasSubstr(fmt::format("<h2 id='{}'", key)))) << key;
    EXPECT_TRUE(std::regex_search(page, std::regex(std::string("Left out here, because [^<]*") + key)))
        << key;
  }
  std::vector<Record> records;  // serial fraction 5 %: fitted, and below 80 %
  for (int64_t ranks : {1, 2, 4, 8, 16})
    records.push_back(training_record("ddp", ranks, 64 / ranks, 0.05 + 0.95 / static_cast<double>(ranks)));
  const std::string fitted = page_with(records);
  EXPECT_THAT(fitted, HasSubstr("<h3>Efficiency: where it falls below 80 %</h3>"));
  EXPECT_THAT(fitted, HasSubstr("<h2 id='scaling_laws'>"));
}

TEST(PagePlots, AnswerSomethingBetterThanTheirTable) {
  const auto shown = [](const std::vector<Record>& records, const std::string& key) {
    for (const Plot& plot : make_plots({study_of(records)}))
      if (plot.key == key) return is_telling(plot, false);
    throw ContractError("no plot " + key);
  };
  const std::vector<Record> one = {training_record("ddp", 1, 8, 0.1)},
                            two = {one[0], training_record("ddp", 2, 8, 0.11)},
                            three = {two[0], two[1], training_record("ddp", 4, 8, 0.12)};
  EXPECT_FALSE(shown(one, "phases"));
  EXPECT_TRUE(shown(two, "phases"));
  EXPECT_FALSE(shown(two, "weak_efficiency"));
  EXPECT_TRUE(shown(three, "weak_efficiency"));
  EXPECT_FALSE(shown(one, "interconnects"));
  for (const Plot& plot : make_plots({study_of(one)}))
    if (plot.key == "interconnects") {
      EXPECT_TRUE(is_telling(plot, true));
    }
}

TEST(PageTables, SayOnceWhatASectionShares) {
  std::vector<Record> records = two_strategies();
  for (const char* strategy : {"ddp", "zero3"}) {
    records.push_back(training_record(strategy, 2, 8, 0.2));
    records.back().point.training.precision = "bf16";
    records.back().point.training.model.options["layers"] = 6;
  }
  const std::string page = page_with(records);
  const size_t part = page.find("<table", page.find("<h2 id='strategies'"));
  const std::string table = page.substr(part, page.find("</table>", part) - part);
  EXPECT_EQ(times_in(table, "<tr class='setting'>"), 2u);
  EXPECT_EQ(times_in(table, "<tbody>"), 2u);
  EXPECT_EQ(times_in(table, "gpt2(layers=6"), 1u);
  EXPECT_THAT(table, Not(HasSubstr("<span>model</span>")));
}

TEST(PageTables, HaveCaptionsAndScopes) {
  const std::string page = page_with(two_strategies());
  const size_t tables = times_in(page, "<table");
  EXPECT_EQ(times_in(page, "<caption>"), tables);
  EXPECT_EQ(times_in(page, "role='region' aria-label='"), tables);
  EXPECT_EQ(times_in(page, "<th>"), 0u);
  EXPECT_GT(times_in(page, "<th scope='col'"), tables);
  EXPECT_GE(times_in(page, "<th scope='row'"), tables);
  EXPECT_THAT(page, HasSubstr("<a class=\"skip\" href=\"#content\">"));
  EXPECT_THAT(page, HasSubstr("<main id=\"content\""));
}

// A strategy's colour is dark enough for white paper, and another one for dark paper.
TEST(PageStyle, HasColoursForDarkPaper) {
  const std::string page = page_with(two_strategies());
  EXPECT_THAT(page, HasSubstr("@media (prefers-color-scheme: dark)"));
  EXPECT_THAT(page, HasSubstr("color-scheme: light dark"));
  EXPECT_THAT(page, HasSubstr(".plot [stroke=\"#0072B2\"]"));
}

TEST(PageEnvironment, SaysQuantities) {
  StudyData study = study_of(two_strategies());
  *study.environment.facts = {{"device_memory_bytes", 25276502016.0},
                              {"peak_flops", {{"fp32", 101990117449.8}}}};
  const std::string page = make_page(ReportData({study}));
  EXPECT_THAT(page, HasSubstr("device_memory_bytes: 23.5 GiB; peak_flops: fp32 102.0 GFLOP/s"));
}

TEST(PageContents, AreTheNamesOfTables) {
  const std::string page = page_with(two_strategies());
  EXPECT_THAT(page, HasSubstr("<a href='#strategies'>Strategies</a>"));
  EXPECT_THAT(page, HasSubstr("<a href='#phases'>Phases</a>"));
  EXPECT_THAT(page, HasSubstr("<h3>Communication of a step: counted, predicted, and by phase</h3>"));
  EXPECT_THAT(page, Not(HasSubstr("communication'>")));
}

}  // namespace
}  // namespace shardmark

// Tests the plots: their values against numbers computed by hand, their axes, and the files that are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "analysis/plots/plots.h"
#include "analysis/render/axis.h"
#include "analysis/render/files.h"
#include "plots_fixture.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Curve& curve_called(const Plot& plot, const std::string& name) {
  for (const Curve& curve : plot.curves)
    if (curve.name == name) return curve;
  throw ContractError("no curve " + name);
}

TEST(PlotAxis, TicksAreRound) {
  EXPECT_THAT(labels_of({""}, {0, 106}), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(labels_of({""}, {3.4, 5.6}), ElementsAre("3.5", "4.0", "4.5", "5.0", "5.5"));
  EXPECT_THAT(labels_of({"", Scale::log2}, {0.9, 70}), ElementsAre("1", "2", "4", "8", "16", "32", "64"));
  EXPECT_THAT(labels_of({"", Scale::log10}, {0.008, 30}), ElementsAre("0.01", "0.1", "1", "10"));
  EXPECT_THAT(labels_of({"", Scale::log10}, {40, 2500}),
              ElementsAre("50", "100", "200", "500", "1,000", "2,000"));
  EXPECT_THAT(labels_of({"", Scale::log2, true, true}, {7, 0x1p31}),
              ElementsAre("32 B", "1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"));
}

TEST(PlotAxis, RangesHoldWhatCanBeShown) {
  Plot plot{"k", "t", "T", "", "", {"x", Scale::log2}, {"y"}, {}, {{"c", Form::measured, 0, {}}}};
  plot.curves[0].points = {{1, 10, 8, 20}, {0, 5}, {4, Measures::kNone}};  // a logarithmic axis cannot show 0
  EXPECT_LT(over_range(plot).low, 1);
  EXPECT_LT(over_range(plot).high, 4);
  EXPECT_EQ(value_range(plot).low, 0);  // bars can be compared only if the axis starts at 0
  EXPECT_GT(value_range(plot).high, 20);
  EXPECT_DOUBLE_EQ(axis_place({"", Scale::log2}, {1, 16}, 4), 0.5);
}

TEST(Plots, ScalingByHand) {
  const Plots plots = plots_of({training_record("ddp", 1, 8, 0.8), training_record("ddp", 2, 8, 1.0),
                                training_record("zero3", 1, 8, 1.0), training_record("zero3", 4, 8, 2.0)});
  const Plot& rates = plot_called(plots, "weak_scaling");
  EXPECT_THAT(rates.about, HasSubstr("batch 8 per rank"));
  const Curve& ddp = curve_called(rates, "ddp");
  EXPECT_DOUBLE_EQ(ddp.points[1].value, 16 * 128);  // tokens of 2 x 8 samples in 1 s
  EXPECT_DOUBLE_EQ(ddp.points[1].low, 16 * 128 / 1.01);
  const Curve& ideal = curve_called(rates, "ideal");  // starts from ddp, the fastest on one rank
  EXPECT_DOUBLE_EQ(ideal.points[0].value, 10 * 128);
  EXPECT_DOUBLE_EQ(ideal.points[1].value, 40 * 128);  // up to 4 ranks, the largest number of any strategy
  const Plot& efficiency = plot_called(plots, "weak_efficiency");
  EXPECT_DOUBLE_EQ(curve_called(efficiency, "ddp").points[1].value, 80);
  EXPECT_DOUBLE_EQ(curve_called(efficiency, "ddp").points[1].low, 100 * (0.8 * 0.99) / 1.01);
  EXPECT_DOUBLE_EQ(curve_called(efficiency, "zero3").points[1].value, 50);
}

TEST(Plots, FittedLawsGoOnBeyondTheMeasuredCounts) {
  std::vector<Record> records;  // a serial fraction of 5 %
  for (int64_t ranks : {1, 2, 4, 8, 16}) {
    const auto n = static_cast<double>(ranks);
    records.push_back(training_record("ddp", ranks, 64 / ranks, 0.05 + 0.95 / n));
  }
  const Plots plots = plots_of(records);
  const Plot& plot = plot_called(plots, "laws");
  const Curve &measured = plot.curves.at(0), &law = plot.curves.at(1);
  EXPECT_EQ(measured.name, "ddp: Amdahl, s = 5.00 % (5.00 to 5.00)");
  EXPECT_NEAR(measured.points.back().value, 1 / (0.05 + 0.95 / 16), 1e-9);
  EXPECT_DOUBLE_EQ(law.points.back().over, 64);
  EXPECT_NEAR(law.points.back().value, 1 / (0.05 + 0.95 / 64), 1e-6);
}

// The cost grows less than linearly, so beta is held at its bound of 0.
TEST(Plots, AParameterHeldAtZeroHasNoInterval) {
  std::vector<Record> records;
  int64_t ranks = 1;
  for (const double images_per_s : {450., 880., 1720., 3360., 6400., 12160., 22400., 41600.}) {
    records.push_back(training_record("ddp", ranks, 8, static_cast<double>(ranks) / images_per_s));
    ranks *= 2;
  }
  const Plots plots = plots_of(records);
  const std::string name = plot_called(plots, "laws").curves.at(0).name;
  EXPECT_THAT(name, HasSubstr("USL"));
  EXPECT_THAT(name, HasSubstr("beta = 0"));
  EXPECT_EQ(name.find("nan"), std::string::npos) << name;
}

TEST(Plots, InterconnectsByFormula) {
  const Record one = training_record("ddp", 1, 8, 0.5);
  const specs::Link link = specs::link_from_text("mine=5us,25GB/s");
  const Plots plots = make_plots({study_of({one})}, {link});
  const double bytes =
      4.0 *
      static_cast<double>(specs::model_spec("gpt2").table(one.point.training.model.options).num_parameters());
  const PlotPoint& at_8 = curve_called(plot_called(plots, "interconnects"), "mine").points.at(3);
  EXPECT_EQ(at_8.over, 8);
  EXPECT_EQ(curve_called(plot_called(plots, "interconnects"), "mine").points.size(),
            4u);  // a batch of 8 samples uses at most 8 ranks
  EXPECT_NEAR(at_8.value, 0.5 / (0.5 / 8 + 14 * (5e-6 + bytes / 8 / 25e9)), 1e-9);
  const Plot& overhead = plot_called(plots, "all_reduce_overhead");
  EXPECT_DOUBLE_EQ(overhead.references.at(0).at, bytes / 1e6);
  EXPECT_NEAR(overhead.curves.at(0).points.at(4).value, 1e3 * 14 * (5e-6 + 1e8 / 8 / 25e9),
              1e-9);  // at 100 MB
}

TEST(Plots, SeriesByChanceStandAside) {
  // Weak scaling with batch 4 on 1, 2 and 4 ranks. Its global batch of 8 on 2 ranks happens to equal that of
  // the point with batch 8 on one rank.
  std::vector<Record> records;
  for (int64_t ranks : {1, 2, 4}) records.push_back(training_record("ddp", ranks, 4, 0.1));
  records.push_back(training_record("ddp", 1, 8, 0.2));
  for (int64_t ranks : {1, 2, 4}) records.push_back(training_record("ddp", ranks, 48 / ranks, 1.2));
  int num_strong = 0;
  for (const Plot& plot : plots_of(records)) num_strong += plot.title == "Strong scaling" ? 1 : 0;
  EXPECT_EQ(num_strong, 1);
}

TEST(Plots, BarsAddUpToTheStepAndThePrediction) {
  const Plots plots = plots_of({training_record("ddp", 2, 4, 0.1, 0.02)});
  const Plot& phases = plot_called(plots, "phases");
  double sum = 0;
  for (const Curve& curve : phases.curves)
    if (curve.form == Form::bar) sum += curve.points[0].value;
  EXPECT_NEAR(sum, 100, 1e-9);  // in milliseconds
  EXPECT_DOUBLE_EQ(curve_called(phases, "step").points[0].value, 100);
  const Plot& memory = plot_called(plots, "memory");
  double held = 0;
  for (const char* kind : {"parameters", "gradients", "optimizer state", "transient", "activations"})
    held += curve_called(memory, kind).points[0].value;
  EXPECT_NEAR(curve_called(memory, "predicted").points[0].value, held, 1e-9);
  EXPECT_NEAR(curve_called(memory, "activations").points[0].value, 50e6 / 0x1p20, 1e-9);
}

TEST(Plots, CollectivesMarkTheBucketsOfTraining) {
  const Record ddp = training_record("ddp", 2, 4, 0.1);
  const Plots plots = plots_of({ddp, collective_record("all_reduce", 2, 1024, true, 1e-5),
                                collective_record("all_reduce", 2, 1024, false, 2e-5),
                                collective_record("all_reduce", 2, 1 << 20, false, 1e-3)});
  const Plot& busbw = plot_called(plots, "busbw");
  EXPECT_DOUBLE_EQ(curve_called(busbw, "all_reduce").points.at(0).value, 1024 / 1e-5 / 1e9);
  EXPECT_EQ(curve_called(busbw, "all_reduce, out of place").points.size(),
            2u);  // one size was not measured in place
  double reduced = 0;
  for (const ReferenceLine& line : busbw.references) reduced += line.at;
  EXPECT_DOUBLE_EQ(reduced, ddp.measures.traffic_bytes);  // 2(n-1)/n = 1 for two ranks
}

TEST(Plots, LongRunsAreMeansOfStretches) {
  Record run = training_run("ddp", 1000);
  const std::vector<double>& loss = run.samples[0].values;
  const Plots plots = plots_of({run});
  const Curve& curve = curve_called(plot_called(plots, "loss"), "ddp, 2 ranks");
  ASSERT_EQ(curve.points.size(), 334u);  // each point is the mean of 3 steps
  EXPECT_DOUBLE_EQ(curve.points[0].value, (loss[0] + loss[1] + loss[2]) / 3);
  EXPECT_EQ(curve.points.back().over, 1000);
}

TEST(Plots, NothingOfAStudyWithoutResults) {
  Record failed = training_record("ddp", 2, 4, 0.1);
  failed.outcome = Outcome::failed;
  EXPECT_TRUE(plots_of({failed}).empty());
  Record bare = training_record("ddp", 2, 4, 0.1);
  bare.measures = {};
  EXPECT_TRUE(plots_of({bare}).empty());  // without measurements there are no plots
}

class PlotFilesTest : public ::testing::Test {
 protected:
  ScratchDirectory scratch_;
};

TEST_F(PlotFilesTest, EveryPlotInThreeForms) {
  if (std::system("rsvg-convert --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no rsvg-convert";
  const Plots plots = make_plots({study_of_200_points()});
  ASSERT_GT(plots.size(), 10u);
  const PlotFiles files = write_plots(plots, scratch_ / "plots");
  EXPECT_TRUE(files.is_converted);
  ASSERT_EQ(files.paths.size(), 3 * plots.size());
  const std::map<std::string, std::string> openings = {
      {".svg", "<?xml"}, {".png", "\x89PNG"}, {".pdf", "%PDF-"}};
  for (const auto& path : files.paths) {
    const std::string& opening = openings.at(path.extension().string());
    EXPECT_EQ(read_text(path.string()).substr(0, opening.size()), opening) << path;
  }
  EXPECT_THAT(read_text(scratch_ / "plots/weak_scaling_1.svg"), HasSubstr("fsdp(shard=gradients)"));
}

// A study may come from somebody else. Its texts are drawn as text and cannot change the structure of the SVG
// document.
TEST_F(PlotFilesTest, WhatAStudySaysIsText) {
  const std::string hostile = "it's </text><script>ran()</script> \"&\x01";
  Plot plot{"k", "t", hostile, hostile, hostile, {hostile}, {hostile}, {hostile}, {}, {{1, hostile}}};
  plot.curves = {{hostile, Form::measured, 0, {{0, 1}}}, {hostile, Form::bar, 0, {{0, 2}}}};
  write_plots({plot}, scratch_ / "plots");  // rsvg-convert, if installed, rejects invalid XML
  const std::string svg = read_text(scratch_ / "plots/k.svg");
  EXPECT_THAT(svg, HasSubstr("it&#39;s &lt;/text&gt;&lt;script&gt;ran()&lt;/script&gt; &quot;&amp; "));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

TEST_F(PlotFilesTest, WithoutAConverterTheSvgIsThere) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const PlotFiles files = write_plots(plots_of({training_record("ddp", 2, 4, 0.1)}), scratch_ / "plots");
  setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(files.is_converted);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "plots/memory.svg"));
  for (const auto& file : files.paths) EXPECT_EQ(file.extension(), ".svg");
}

}  // namespace
}  // namespace shardmark

// What makes a plot readable: axes that show the data, names beside marks, ticks that people read, headings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/plots/plots.h"
#include "analysis/render/axis.h"
#include "analysis/render/mark_names.h"
#include "analysis/render/svg.h"
#include "plots_fixture.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Record with_peak(Record record, double bytes) {
  record.measures.peak_bytes = bytes;
  return record;
}

TEST(ReadableTicks, NobodyCountsZeros) {
  EXPECT_THAT(labels_of({""}, {0, 440e3}), ElementsAre("0", "100k", "200k", "300k", "400k"));
  EXPECT_THAT(labels_of({""}, {0, 1.5e6}), ElementsAre("0", "0.5M", "1.0M", "1.5M"));
  EXPECT_THAT(labels_of({""}, {0, 80e3}), ElementsAre("0", "20,000", "40,000", "60,000", "80,000"));
  EXPECT_THAT(labels_of({"", Scale::log10}, {900, 2e9}),
              ElementsAre("1,000", "10,000", "100k", "1M", "10M", "100M", "1G"));
  // Powers of two are not rounded.
  EXPECT_THAT(labels_of({"", Scale::log2}, {60e3, 300e3}), ElementsAre("65,536", "131,072", "262,144"));
}

TEST(SpeedAgainstMemory, ShowsItsDataAndNamesItsMarks) {
  const Plots plots = plots_of({with_peak(training_record("ddp", 2, 8, 0.1), 9e9),
                                with_peak(training_record("fsdp", 2, 8, 0.102), 8.7e9),
                                with_peak(training_record("zero3", 2, 8, 0.103), 8.6e9)});
  const Plot& plot = plot_called(plots, "speed_and_memory");
  EXPECT_EQ(plot.over.label, "peak memory (GiB)");
  EXPECT_THAT(plot.note, HasSubstr("Neither axis starts at zero."));
  const Range over = over_range(plot), value = value_range(plot);
  EXPECT_GT(over.low, 7.5);
  EXPECT_LT(over.high, 9);
  EXPECT_GT(value.low, 0.9 * plot.curves[2].points[0].value);
  const std::string svg = to_svg(plot);
  for (const char* name : {">ddp<", ">fsdp<", ">zero3<"}) {
    EXPECT_THAT(svg, HasSubstr(std::string("<text class='name'"))) << name;
    EXPECT_EQ(svg.find(name), svg.rfind(name)) << "a legend says it again: " << name;
  }
}

// Two strategies that differ by a thousandth do not stand at opposite ends of the plot.
TEST(SpeedAgainstMemory, DoesNotMagnifyNoise) {
  std::vector<Record> records = {training_record("ddp", 2, 8, 0.1), training_record("zero3", 2, 8, 0.1001)};
  for (Record& record : records) {
    record.measures.step_low_s = record.measures.step_high_s = record.measures.step_s;
    record.measures.peak_bytes = 9e9;
  }
  const Plots plots = plots_of(records);
  const Plot& plot = plot_called(plots, "speed_and_memory");
  const Range value = value_range(plot);
  const double a = axis_place(plot.value, value, plot.curves[0].points[0].value);
  const double b = axis_place(plot.value, value, plot.curves[1].points[0].value);
  EXPECT_LT(std::abs(a - b), 0.05);
}

TEST(SpeedAgainstMemory, StartsAtZeroWhereThatIsNear) {
  const Plots plots = plots_of({with_peak(training_record("ddp", 2, 8, 0.1), 9e8),
                                with_peak(training_record("zero3", 2, 8, 0.11), 1e8)});
  const Plot& plot = plot_called(plots, "speed_and_memory");
  EXPECT_EQ(plot.over.label, "peak memory (MiB)");
  EXPECT_EQ(over_range(plot).low, 0);
  EXPECT_GT(value_range(plot).low, 0);
  EXPECT_THAT(plot.note, HasSubstr("Speed does not start at zero."));
}

TEST(MarkNames, AvoidEachOtherAndTheEdge) {
  const Frame frame{40, 0, 400, 200};
  const std::vector<Place> marks = {{380, 100}, {382, 104}, {200, 50}, {203, 56}, {42, 190}};
  const std::vector<std::string> names = {"fsdp(shard=gradients)", "fsdp(shard=optimizer)", "ddp", "single",
                                          "zero3"};
  const std::vector<NamePlace> places = name_places(marks, names, {}, frame);
  for (size_t i = 0; i < places.size(); ++i) {
    const Frame& a = places[i].box;
    EXPECT_TRUE(a.left >= frame.left && a.right <= frame.right && a.top >= frame.top &&
                a.bottom <= frame.bottom)
        << names[i];
    for (size_t k = 0; k < i; ++k) {
      const Frame& b = places[k].box;
      EXPECT_TRUE(a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top)
          << names[i] << " lies on " << names[k];
    }
  }
}

TEST(MemoryPlot, SpeaksOfAPredictionOnlyWhereThereIsOne) {
  Record with = training_record("ddp", 2, 8, 0.1), without = with;
  without.measures.predicted_activation_bytes = Measures::kNone;
  without.point.training.batch_size = 16;
  const Plots plots = plots_of({with, without});
  const Plot &predicted = plot_called(plots, "memory_1"), &measured = plot_called(plots, "memory_2");
  EXPECT_EQ(predicted.title, "Memory of a rank, measured and predicted");
  EXPECT_EQ(predicted.curves.back().name, "predicted");
  EXPECT_EQ(measured.title, "Memory of a rank");
  EXPECT_THAT(measured.note, Not(HasSubstr("redicted")));
  for (const Curve& curve : measured.curves) EXPECT_NE(curve.name, "predicted");
}

TEST(PlotHeadings, NameTheOnlyDevice) {
  const std::vector<Record> records = {training_record("ddp", 2, 8, 0.1)};
  const Plots of_one = plots_of(records);
  EXPECT_THAT(plot_called(of_one, "phases").about, EndsWith(", Some CPU"));
  for (const Plot& plot : of_one)
    if (plot.table == "interconnects") {
      EXPECT_THAT(plot.about, Not(HasSubstr("Some CPU")));
    }
  StudyData other = study_of(records);
  other.environment.devices = {"Some GPU"};
  for (const Plot& plot : make_plots({study_of(records), other}))
    if (plot.table == "phases") {
      EXPECT_THAT(plot.about, Not(EndsWith(", Some CPU, Some GPU")));
    }
}

TEST(CollectivePlots, DoNotJoinTwoSizes) {
  const auto forms_of = [](const std::vector<int64_t>& sizes) {
    std::vector<Record> records;
    for (const int64_t bytes : sizes)
      records.push_back(collective_record("all_reduce", 2, bytes, true, 1e-5));
    const Plots plots = plots_of(records);
    return plot_called(plots, "busbw").curves.front().form;
  };
  EXPECT_EQ(forms_of({1 << 12, 1 << 22}), Form::dots);
  EXPECT_EQ(forms_of({1 << 12, 1 << 16, 1 << 22}), Form::measured);
}

}  // namespace
}  // namespace shardmark

// Tests drawings of pipeline schedules: they look like the figures of the papers, fit a given width, and can
// be made as SVG.
#include "strategies/pipeline_drawing.h"

#include <gmock/gmock.h>

#include <sstream>

#include "analysis/render/pipeline_svg.h"
#include "pipeline_testing.h"

namespace shardmark::strategies {
namespace {

PipelineTimeline drawn_timeline(const PipelineLayout& layout) {
  const double share = 1.0 / static_cast<double>(layout.chunks);
  return layout.timeline({{share, 2 * share, share, share}});
}

size_t num_found(const std::string& text, const std::string& wanted) {
  size_t num = 0;
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++num;
  return num;
}

TEST(PipelineDrawings, ReadLikeTheFigures) {
  EXPECT_EQ(draw_text(drawn_timeline({"gpipe", 4, 4})),
            "stage 0 |0 1 2 3 ..................<0--<1--<2--<3--|\n"
            "stage 1 |..0 1 2 3 ............<0--<1--<2--<3--....|\n"
            "stage 2 |....0 1 2 3 ......<0--<1--<2--<3--........|\n"
            "stage 3 |......0 1 2 3 <0--<1--<2--<3--............|\n"
            "0: forward of micro-batch 0, <0: its backward\n");
  EXPECT_EQ(draw_text(drawn_timeline({"1f1b", 4, 8})),
            "stage 0 |0 1 2 3 ............<0--4 <1--5 <2--6 <3--7 <4--..<5--..<6--..<7--|\n"
            "stage 1 |..0 1 2 ........<0--3 <1--4 <2--5 <3--6 <4--7 <5--..<6--..<7--....|\n"
            "stage 2 |....0 1 ....<0--2 <1--3 <2--4 <3--5 <4--6 <5--7 <6--..<7--........|\n"
            "stage 3 |......0 <0--1 <1--2 <2--3 <3--4 <4--5 <5--6 <6--7 <7--............|\n"
            "0: forward of micro-batch 0, <0: its backward\n");
  EXPECT_EQ(draw_text(drawn_timeline({"zero_bubble", 3, 4})),
            "stage 0 |0  1  2  ......<0-w0 3  <1-w1 <2-w2 <3-w3 |\n"
            "stage 1 |...0  1  ...<0-2  <1-w0 3  <2-w1 <3-w2 w3 |\n"
            "stage 2 |......0  <0-1  <1-2  <2-w0 3  <3-w1 w2 w3 |\n"
            "0: forward of micro-batch 0, <0: its backward_input, w0: its backward_weight\n");
  EXPECT_EQ(draw_text(drawn_timeline({"interleaved", 2, 2, 2})),
            "stage 0 |0 1 0b1b....<0b-..<1b-<0--<1--|\n"
            "stage 1 |..0 1 0b<0b-1b<1b-<0--<1--....|\n"
            "0: forward of micro-batch 0, <0: its backward, 0b: through the second part of a stage\n");
}

TEST(PipelineDrawings, SumUp) {
  EXPECT_EQ(summary(drawn_timeline({"1f1b", 4, 8})), "33.0 s, bubble 27.3 %, in flight 4, 3, 2, 1");
  EXPECT_EQ(summary(drawn_timeline({"interleaved", 4, 8, 2})),
            "28.5 s, bubble 15.8 %, in flight 11, 9, 7, 5 (chunks of which a stage has 2)");
}

// Whatever the layout and the costs, no line is too long and all ranks have lines of the same length.
TEST(PipelineDrawings, FitTheWidth) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.01, 1);
  for (int trial = 0; trial < 200; ++trial) {
    const PipelineLayout layout = random_layout(random);
    SCOPED_TRACE(layout.text());
    const size_t width = 60 + random() % 100;
    const PipelineCosts costs{{seconds(random), seconds(random), seconds(random), seconds(random)}};
    std::istringstream lines(draw_text(layout.timeline(costs), width));
    size_t of_lines = 0;
    int64_t num_rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("stage ")) continue;
      ASSERT_LE(line.size(), width);
      if (num_rows++ % layout.count == 0) of_lines = line.size();
      ASSERT_EQ(line.size(), of_lines);
    }
    EXPECT_EQ(num_rows % layout.count, 0);
    EXPECT_GE(num_rows, layout.count);
  }
}

// A drawing that is too wide continues below, and no number is cut at the break.
TEST(PipelineDrawings, GoOnBelow) {
  const std::string text = draw_text(drawn_timeline({"1f1b", 8, 16}), 140);
  EXPECT_EQ(num_found(text, "stage 0"), 2U);
  for (int64_t m = 0; m < 16; ++m) EXPECT_EQ(num_found(text, "<" + std::to_string(m) + "-"), 8U) << m;
  EXPECT_EQ(draw_text({}), "");
}

TEST(PipelineDrawings, AreMadeAsSvg) {
  const PipelineTimeline timeline = drawn_timeline({"interleaved", 4, 8, 2});
  const std::string svg = pipeline_svg(timeline);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, testing::HasSubstr("bubble 15.8 %"));
  EXPECT_EQ(num_found(svg, "<title>"), 4U * 8 * 2 * 2);
  EXPECT_THAT(
      svg, testing::HasSubstr("<title>backward of micro-batch 7 through chunk 0, 27.5 s to 28.5 s</title>"));
}

}  // namespace
}  // namespace shardmark::strategies

// Tests timelines of pipelines: bubbles and the number of micro-batches in flight, compared with the formulas
// of the papers and with a simulation of PyTorch's orders.
#include <gtest/gtest.h>

#include "pipeline_testing.h"

namespace shardmark::strategies {
namespace {

// A micro-batch costs a rank 1 for forward and 2 for backward, whatever the number of chunks.
PipelineTimeline unit_timeline(const PipelineLayout& layout) {
  const double share = 1.0 / static_cast<double>(layout.chunks);
  return layout.timeline({{share, 2 * share, share, share}});
}

std::vector<double> micro_batches_in_flight(const PipelineTimeline& timeline) {
  std::vector<double> most;
  for (const int64_t chunks : timeline.most_in_flight)
    most.push_back(static_cast<double>(chunks) / static_cast<double>(timeline.chunks));
  return most;
}

struct KnownTimeline {
  PipelineLayout layout;
  double bubble, share;
  std::vector<double> in_flight;  // for the first ranks; the others are not compared
};

// The values come from another simulator with the orders of PyTorch 2.11 and without communication costs.
const KnownTimeline kKnown[] = {
    {{"gpipe", 4, 8}, 9, 0.273, {8, 8, 8, 8}},
    {{"1f1b", 4, 8}, 9, 0.273, {4, 3, 2, 1}},
    {{"1f1b", 4, 4}, 9, 0.429, {4, 3, 2, 1}},
    {{"1f1b", 8, 16}, 21, 0.304, {8, 7, 6, 5, 4, 3, 2, 1}},
    {{"interleaved", 4, 8, 2}, 4.5, 0.158, {5.5, 4.5, 3.5, 2.5}},
    {{"interleaved", 4, 8, 4}, 2.25, 0.086, {4.75, 4.25, 3.75, 3.25}},
    {{"interleaved", 8, 16, 2}, 10.5, 0.179, {11.5, 10.5, 9.5, 8.5, 7.5, 6.5, 5.5, 4.5}},
    {{"interleaved", 4, 6, 2}, 4.5, 0.2, {6}},
    {{"interleaved", 4, 7, 2}, 4.5, 0.176, {7}},
    {{"interleaved", 4, 10, 2}, 4.5, 0.130, {6}},
    {{"interleaved", 4, 3, 2}, 6, 0.4, {3}},
    {{"zero_bubble", 4, 8}, 3, 0.111, {4, 4, 4, 4}},
    {{"zero_bubble", 8, 16}, 7, 0.127, {8, 8, 8, 8, 8, 8, 8, 8}},
    {{"zero_bubble", 4, 3}, 4, 0.308, {3}},
    {{"zero_bubble", 4, 6}, 3, 0.143, {4}},
    {{"zero_bubble_v", 4, 8, 2}, 1.5, 0.059, {4, 4, 4, 4}},
    {{"zero_bubble_v", 8, 16, 2}, 3.5, 0.068, {8, 8, 8, 8, 8, 8, 8, 8}},
    {{"zero_bubble_v", 4, 6, 2}, 1.5, 0.077, {3.5, 4, 4, 4}},
    {{"zero_bubble_v", 4, 3, 2}, 4, 0.308, {2, 2.5, 3, 3}},
};

TEST(PipelineTimelines, HaveTheKnownBubbles) {
  for (const KnownTimeline& known : kKnown) {
    SCOPED_TRACE(known.layout.text());
    const PipelineTimeline timeline = unit_timeline(known.layout);
    for (const double idle : timeline.idle_s) EXPECT_NEAR(idle, known.bubble, 1e-9);
    EXPECT_NEAR(timeline.idle_share(), known.share, 0.0005);
    std::vector<double> in_flight = micro_batches_in_flight(timeline);
    in_flight.resize(known.in_flight.size());
    EXPECT_EQ(in_flight, known.in_flight);
  }
}

struct UnequalPasses {
  const char* schedule;
  PassCosts costs;
  double bubble;
};

// All have 4 ranks and 8 micro-batches, as above.
const UnequalPasses kUnequal[] = {
    {"1f1b", {1, 2, 1.5, 0.5}, 9},
    {"zero_bubble", {1, 2, 1.5, 0.5}, 6},
    {"zero_bubble", {1, 2, 1.2, 0.8}, 4.2},
    {"zero_bubble", {1, 2, 0.8, 1.2}, 3},
    {"zero_bubble_v", {1, 2, 1, 0.5}, 3},
    {"zero_bubble_v", {1, 2, 1.2, 0.8}, 3.6},
    {"zero_bubble_v", {1, 2, 0.8, 1.2}, 3.4},
};

TEST(PipelineTimelines, HaveTheKnownBubblesOfUnequalPasses) {
  for (const UnequalPasses& known : kUnequal) {
    const PipelineLayout layout{known.schedule, 4, 8, usual_chunks(known.schedule)};
    const PipelineTimeline found = layout.timeline({known.costs});
    EXPECT_NEAR(found.idle_s.front(), known.bubble, 1e-9)
        << known.schedule << ", weights " << known.costs.backward_weight_s;
  }
}

// The formula (P-1)(F+I-W) of the paper holds for W <= F and W <= I. A longer W delays forward and the
// gradients of inputs.
TEST(PipelineTimelines, OfZeroBubbleFollowItsFormulaForAnyCosts) {
  std::mt19937 random(13);
  std::uniform_real_distribution<double> seconds(0.1, 3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto p = static_cast<int64_t>(2 + random() % 8), m = static_cast<int64_t>(p + random() % 20);
    const double f = seconds(random), i = seconds(random), w = seconds(random);
    const PipelineTimeline found = timeline(PipelineLayout{"zero_bubble", p, m}.orders(), {{f, i + w, i, w}});
    for (const double idle : found.idle_s)
      EXPECT_NEAR(idle, static_cast<double>(p - 1) * std::max({f, i, f + i - w}), 1e-9)
          << p << " ranks, " << m << " micro-batches, F " << f << ", I " << i << ", W " << w;
  }
}

// The bubble is (P-1)(F+B) for GPipe and 1F1B, with min(m, P-r) micro-batches in flight under 1F1B.
// Interleaving divides the bubble by v and has min(m, [(v-1)P + 2(P-1-r) + 1]/v) in flight. ZB-H1 has a
// bubble of (P-1)(F+I-W) and P micro-batches in flight, ZB-V with F = I = W one of (P-1)F/2 and as many.
TEST(PipelineTimelines, FollowThePapersFormulas) {
  for (int64_t count = 1; count <= 9; ++count)
    for (int64_t rounds = 1; rounds <= 4; ++rounds) {
      const auto p = static_cast<double>(count);
      const int64_t m = rounds * count;
      EXPECT_NEAR(unit_timeline({"gpipe", count, m}).idle_s[0], 3 * (p - 1), 1e-9);
      EXPECT_NEAR(unit_timeline({"1f1b", count, m}).idle_s[0], 3 * (p - 1), 1e-9);
      EXPECT_NEAR(unit_timeline({"zero_bubble", count, m}).idle_s[0], p - 1, 1e-9);
      const PipelineTimeline there_and_back = unit_timeline({"zero_bubble_v", count, m, 2});
      const bool is_filled = rounds > 1;  // with 2 P - 1 micro-batches or more
      if (is_filled) {
        EXPECT_NEAR(there_and_back.idle_s[0], (p - 1) / 2, 1e-9);
      }
      for (int64_t rank = 0; rank < count; ++rank) {
        const auto at = static_cast<size_t>(rank);
        EXPECT_EQ(unit_timeline({"gpipe", count, m}).most_in_flight[at], m);
        EXPECT_EQ(unit_timeline({"1f1b", count, m}).most_in_flight[at], count - rank);
        EXPECT_EQ(unit_timeline({"zero_bubble", count, m}).most_in_flight[at], count);
        if (is_filled) {
          EXPECT_EQ(there_and_back.most_in_flight[at], 2 * count);
        }
        for (int64_t v = 2; v <= 4; ++v) {
          const PipelineTimeline interleaved = unit_timeline({"interleaved", count, m, v});
          EXPECT_NEAR(interleaved.idle_s[at], 3 * (p - 1) / static_cast<double>(v), 1e-9);
          EXPECT_EQ(interleaved.most_in_flight[at],
                    std::min(v * m, (v - 1) * count + 2 * (count - 1 - rank) + 1));
        }
      }
    }
}

// Rounds of unequal size, which PyTorch refuses, have the same bubble as equal rounds.
TEST(PipelineTimelines, OfInterleavedKeepTheirBubbleWhereRoundsAreUnequal) {
  for (int64_t count = 2; count <= 6; ++count)
    for (int64_t m = count; m <= 5 * count; ++m)
      for (int64_t v = 2; v <= 3; ++v) {
        const double bubble = 3 * static_cast<double>(count - 1) / static_cast<double>(v);
        EXPECT_NEAR(unit_timeline({"interleaved", count, m, v}).idle_s[0], bubble, 1e-9)
            << count << " ranks, " << m << " micro-batches, " << v << " chunks";
      }
}

TEST(PipelineTimelines, TakeCostsOfEachPartAndLatency) {
  const std::vector<PipelineOrder> orders = PipelineLayout{"1f1b", 2, 1}.orders();
  PipelineCosts costs;
  costs.of_chunks = {{{2, 3, 0, 0}}, {{5, 7, 0, 0}}};
  EXPECT_DOUBLE_EQ(timeline(orders, costs).length_s, 2 + 5 + 7 + 3);
  costs.latency_s = 0.25;
  const PipelineTimeline later = timeline(orders, costs);
  EXPECT_DOUBLE_EQ(later.length_s, 17.5);
  EXPECT_DOUBLE_EQ(later.ranks[1][0].begin_s, 2.25);
  EXPECT_DOUBLE_EQ(later.ranks[0][1].begin_s, 14.5);
  EXPECT_DOUBLE_EQ(later.idle_s[0], 12.5);
  EXPECT_DOUBLE_EQ(later.idle_s[1], 5.5);
  EXPECT_DOUBLE_EQ(later.idle_share(), 18.0 / 35);
  // Messages between chunks of the same rank take no time.
  EXPECT_DOUBLE_EQ(timeline(PipelineLayout{"interleaved", 1, 4, 3}.orders(), {{}, {}, 1}).length_s, 36);
}

PipelineCosts random_costs(std::mt19937& random, const PipelineLayout& layout) {
  std::uniform_real_distribution<double> seconds(0.1, 3);
  PipelineCosts costs;
  for (int64_t rank = 0; rank < layout.count; ++rank) {
    auto& of_rank = costs.of_chunks.emplace_back();
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
      of_rank.push_back({seconds(random), seconds(random), seconds(random), seconds(random)});
  }
  return costs;
}

TEST(PipelineTimelines, BeginEachActionWhenWhatItNeedsHasEnded) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 1000; ++trial) {
    const PipelineLayout layout = random_layout(random);
    SCOPED_TRACE(layout.text());
    expect_possible(layout.timeline(random_costs(random, layout)), placement_of(layout.schedule));
  }
}

}  // namespace
}  // namespace shardmark::strategies

// Shared by the tests of pipelines: all schedules, random layouts, and a check of timelines.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "strategies/pipeline_timeline.h"

namespace shardmark::strategies {

inline constexpr const char* kPipelineSchedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble",
                                                     "zero_bubble_v"};
inline constexpr size_t kNumSchedules = std::size(kPipelineSchedules);

// The number of chunks on a rank if a schedule has its default options.
inline int64_t usual_chunks(const std::string& schedule) {
  return schedule == "interleaved" || schedule == "zero_bubble_v" ? 2 : 1;
}
inline Placement placement_of(const std::string& schedule) {
  return schedule == "zero_bubble_v" ? Placement::v : Placement::loop;
}

struct PipelineLayout {
  std::string schedule;
  int64_t count, micro_batches, chunks = 1;

  std::vector<PipelineOrder> orders() const {
    return pipeline_schedule(schedule).orders(count, chunks, micro_batches);
  }
  Stage stage(int64_t index) const { return {index, count, chunks, placement_of(schedule)}; }
  PipelineTimeline timeline(const PipelineCosts& costs = {}) const {
    return strategies::timeline(orders(), costs, placement_of(schedule));
  }
  std::string text() const {
    return schedule + ": " + std::to_string(count) + " ranks, " + std::to_string(micro_batches) +
           " micro-batches, " + std::to_string(chunks) + " chunks";
  }
};

inline PipelineLayout random_layout(std::mt19937& random) {
  PipelineLayout layout{kPipelineSchedules[random() % kNumSchedules], static_cast<int64_t>(1 + random() % 16),
                        static_cast<int64_t>(1 + random() % 24)};
  layout.chunks = usual_chunks(layout.schedule);
  if (layout.schedule == "interleaved") layout.chunks = static_cast<int64_t>(1 + random() % 4);
  return layout;
}

// The end of each (pass, part, micro-batch). The two backward passes that compute gradients of inputs share a
// key.
using PassEnds = std::map<std::tuple<Pass, int64_t, int64_t>, double>;

// Checks that every action begins as soon as its inputs exist and the rank is free, and no earlier.
inline void expect_possible(const PipelineTimeline& timeline, Placement placement) {
  const auto count = static_cast<int64_t>(timeline.ranks.size());
  const int64_t num_parts = count * timeline.chunks;
  const auto known_as = [](Pass pass) { return pass == Pass::backward_input ? Pass::backward : pass; };
  const auto part_of = [&](int64_t rank, int64_t chunk) {
    return placement == Placement::v && chunk == 1 ? num_parts - 1 - rank : chunk * count + rank;
  };
  PassEnds ends;
  for (int64_t rank = 0; rank < count; ++rank)
    for (const TimedAction& timed : timeline.ranks[static_cast<size_t>(rank)])
      ends[{known_as(timed.action.pass), part_of(rank, timed.action.chunk), timed.action.micro_batch}] =
          timed.end_s;
  for (int64_t rank = 0; rank < count; ++rank) {
    double free_s = 0;
    for (const TimedAction& timed : timeline.ranks[static_cast<size_t>(rank)]) {
      const int64_t m = timed.action.micro_batch, part = part_of(rank, timed.action.chunk);
      double ready_s = free_s;
      const auto needs = [&](Pass pass, int64_t of) { ready_s = std::max(ready_s, ends.at({pass, of, m})); };
      const Pass pass = known_as(timed.action.pass);
      if (pass == Pass::forward && part > 0) needs(Pass::forward, part - 1);
      if (pass == Pass::backward && part + 1 < num_parts) needs(Pass::backward, part + 1);
      if (pass == Pass::backward) needs(Pass::forward, part);
      if (pass == Pass::backward_weight) needs(Pass::backward, part);
      EXPECT_EQ(timed.begin_s, ready_s);  // and not later either
      free_s = timed.end_s;
    }
    EXPECT_LE(free_s, timeline.length_s);
  }
}

}  // namespace shardmark::strategies

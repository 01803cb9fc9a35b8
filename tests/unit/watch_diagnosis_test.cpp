// Tests what a watchdog concludes from the heartbeat pages: which rank is behind, what it is doing, and who
// waits for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/watch/diagnosis.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <size_t kSize>
void put(char (&to)[kSize], const std::string& text) {
  to[text.copy(to, kSize - 1)] = '\0';
}

constexpr double kMiB = 1 << 20;

// Returns a rank that has been in all_gather #123 of step 12 for a minute.
RankState waiting(int64_t rank) {
  RankState state;
  state.rank = rank;
  state.pid = 4000 + rank;
  state.process = 'R';
  state.heard = state.answers = true;
  state.beat_age_s = 61.5;
  put(state.point, "training mlp fsdp 4 ranks");
  state.num_points = 3;
  put(state.stage, "backward");
  state.num_stages = 70;
  state.step = 12;
  state.block = 4;
  state.started = {123, "all_gather", 4 * kMiB, 61.5};
  state.completed = {122, "all_gather", kMiB, 62};
  state.awaited = state.started;
  return state;
}

RankState computing(int64_t rank) {
  RankState state = waiting(rank);
  state.started = {122, "all_gather", kMiB, 64};
  state.awaited = {};
  state.beat_age_s = 60.2;
  return state;
}

RankState resting(int64_t rank) {
  RankState state = waiting(rank);
  state.rests = true;
  state.awaited = state.started = state.completed = {};
  state.num_stages = state.step = 0;
  return state;
}

NodeMap two_by_two() { return make_node_map({"node1", "node1", "node2", "node2"}, {0, 0, 2, 2}); }

std::vector<RankState> four(const RankState& third) { return {waiting(0), waiting(1), third, waiting(3)}; }

// On GPUs, all hosts have launched their operations and wait for the device.
TEST(WatchFinding, NamesTheRankWhoseDeviceIsBehindAndTheOperation) {
  auto states = four(waiting(2));
  for (RankState& state : states) {
    state.started = {140, "all_reduce", kMiB, 61};
    if (state.rank == 2) continue;
    state.completed = {123, "all_gather", 4 * kMiB, 61};
    state.awaited = {124, "reduce_scatter", kMiB, 61};
  }
  const Diagnosis finding = explain(states, two_by_two());
  EXPECT_THAT(finding.reason, HasSubstr("rank 2 on node2 is in all_gather #123 (4.00 MiB), step 12"));
  EXPECT_THAT(finding.message, HasSubstr("last completed all_gather #122; waits in all_gather #123"));
  EXPECT_THAT(finding.message, HasSubstr("ranks 0-1, 3, in reduce_scatter #124"));
}

// Stages run different operations, so the numbers of operations differ between them.
TEST(WatchFinding, NamesStageMicroBatchAndPeer) {
  auto states = four(computing(2));
  for (RankState& state : states) {
    state.pipeline_stage = 1 + state.rank / 2;
    state.micro_batch = 4;
    state.started = {state.rank < 2 ? 40 : 36, "send_recv", kMiB, 61, /*peer=*/state.rank < 2 ? 2 : 1};
    if (state.rank != 2) state.awaited = state.started;
  }
  const Diagnosis finding = explain(states, two_by_two());
  EXPECT_THAT(finding.reason,
              HasSubstr("rank 2 on node2 is in step 12, backward of block 3, micro-batch 3, in stage 1"));
  EXPECT_THAT(finding.message,
              HasSubstr("waiting for it: ranks 0-1, in send_recv #40 (1.00 MiB, with stage 1)"));
  EXPECT_THAT(finding.message,
              HasSubstr("waiting for it: rank 3, in send_recv #36 (1.00 MiB, with stage 0)"));
  EXPECT_THAT(finding.message, Not(HasSubstr("they differ")));
  EXPECT_THAT(finding.message, Not(HasSubstr("has not started")));
}

TEST(WatchFinding, NamesTheRankThatIsStopped) {
  RankState stopped = computing(2);
  stopped.process = 'T';
  stopped.answers = false;
  const Diagnosis finding = explain(four(stopped), two_by_two());
  EXPECT_EQ(
      finding.message,
      "watchdog: no progress for 60 s in training mlp fsdp 4 ranks\n"
      "  behind: rank 2 on node2 (pid 4002, stopped by a signal): step 12, backward of block 3 since 60 s; "
      "last completed all_gather #122; has not started all_gather #123 (4.00 MiB)\n"
      "  waiting for it: ranks 0-1, 3, in all_gather #123 (4.00 MiB) since 61 s\n"
      "  ending the job; what is finished is kept: go on with --resume, or allow more time with --timeout");
  EXPECT_EQ(finding.reason,
            "no progress for 60 s: rank 2 on node2 (stopped by a signal) has not started all_gather #123 "
            "(4.00 MiB) in step 12, backward of block 3");
}

TEST(WatchFinding, ARankThatIsStoppedIsNamedWhereverItIs) {
  RankState ahead = waiting(1);  // it has started more operations than the others
  ahead.started.number = 130;
  ahead.process = 'T';
  ahead.answers = false;
  EXPECT_THAT(explain({waiting(0), ahead, waiting(2), waiting(3)}, two_by_two()).message,
              HasSubstr("behind: rank 1 on node1 (pid 4001, stopped by a signal)"));
  RankState outside = ahead;
  put(outside.point, "");
  EXPECT_THAT(explain({waiting(0), outside, waiting(2), waiting(3)}, two_by_two()).message,
              HasSubstr("behind: rank 1 on node1 (pid 4001, stopped by a signal): between points"));
}

TEST(WatchFinding, ConditionsHaveTheirWords) {
  const auto said = [](char process, bool answers) {
    RankState state = computing(2);
    state.process = process;
    state.answers = answers;
    return explain(four(state), two_by_two()).message;
  };
  EXPECT_THAT(said('t', false), HasSubstr("(pid 4002, stopped by a debugger)"));
  EXPECT_THAT(said('Z', false), HasSubstr("(pid 4002, dead)"));
  EXPECT_THAT(said('-', false), HasSubstr("(pid 4002, dead)"));
  EXPECT_THAT(said('R', false), HasSubstr("(pid 4002, does not respond)"));
  EXPECT_THAT(said('D', true), HasSubstr("(pid 4002, in the kernel: waiting for a device or a file system)"));
  EXPECT_THAT(said('R', true), HasSubstr("behind: rank 2 on node2 (pid 4002): step 12"));
}

TEST(WatchFinding, ARankThatWorksIsBehindThoseThatWait) {
  RankState working = waiting(2);  // it has started as many operations as the others and does not wait
  working.awaited = {};
  working.num_stages += 5;
  EXPECT_EQ(explain(four(working), two_by_two()).reason,
            "no progress for 61 s: rank 2 on node2 is in step 12, backward of block 3");
}

TEST(WatchFinding, OfRanksThatAllWaitThoseWithFewerOperationsAreBehind) {
  RankState left = waiting(2);  // it reached the end of the step without this operation
  left.started.number = 122;
  left.awaited = {};
  left.meets = true;
  put(left.stage, "steps");
  left.block = 0;
  const Diagnosis finding = explain(four(left), two_by_two());
  EXPECT_THAT(finding.message, HasSubstr("behind: rank 2 on node2 (pid 4002): step 12, steps"));
  EXPECT_THAT(finding.reason, HasSubstr("rank 2 on node2 has not started all_gather #123"));
}

TEST(WatchFinding, OfRanksThatAllWorkThoseInAnEarlierStageAreBehind) {
  std::vector<RankState> states;
  for (int64_t rank = 0; rank < 4; ++rank) {
    states.push_back(computing(rank));
    if (rank != 1) states.back().num_stages += 2;
  }
  const Diagnosis finding = explain(states, two_by_two());
  EXPECT_THAT(finding.message, HasSubstr("behind: rank 1 on node1"));
  EXPECT_THAT(finding.message, HasSubstr("others: ranks 0, 2-3, in step 12, backward of block 3 since 60 s"));
}

TEST(WatchFinding, NobodyIsBehindWhereAllWaitForTheSame) {
  const Diagnosis finding = explain(four(waiting(2)), two_by_two());
  EXPECT_EQ(finding.reason,
            "no progress for 61 s: no rank is behind: ranks 0-3 are all in all_gather #123 (4.00 MiB), which "
            "does not complete");
  EXPECT_THAT(finding.message, Not(HasSubstr("behind: rank ")));
}

TEST(WatchFinding, OneRankAloneIsNamed) {
  const Diagnosis finding = explain({computing(0)}, make_node_map({"node1"}, {0}));
  EXPECT_EQ(finding.reason, "no progress for 60 s: rank 0 on node1 is in step 12, backward of block 3");
}

TEST(WatchFinding, RanksThatHaveDoneTheirPartAreNeverBehind) {
  const Diagnosis finding = explain({waiting(0), waiting(1), computing(2), resting(3)}, two_by_two());
  EXPECT_THAT(finding.message, HasSubstr("behind: rank 2 on node2"));
  EXPECT_THAT(finding.message, HasSubstr("waiting for it: rank 3, done with their part"));
  EXPECT_THAT(explain({waiting(0), waiting(1), resting(2), resting(3)}, two_by_two()).reason,
              HasSubstr("no rank is behind: ranks 0-1 are all in all_gather #123"));
}

TEST(WatchFinding, ANodeThatDoesNotAnswerIsNamedWithItsRanks) {
  std::vector<RankState> states{waiting(0), waiting(1)};
  for (int64_t rank : {2, 3}) {
    states.emplace_back();
    states.back().rank = rank;
  }
  const Diagnosis finding = explain(states, two_by_two());
  EXPECT_THAT(finding.message, HasSubstr("\n  behind: ranks 2-3 on node2: the node does not respond\n"));
  EXPECT_EQ(finding.reason,
            "no progress for 61 s: ranks 2-3 on node2 (its node does not respond) are behind");
}

TEST(WatchFinding, DifferentOperationsOfOneNumberAreShown) {
  RankState other = waiting(2);
  other.started = {123, "reduce_scatter", 4 * kMiB, 61};
  const std::string message = explain(four(other), two_by_two()).message;
  EXPECT_THAT(message,
              HasSubstr("they differ: ranks 0-1, 3 started all_gather #123 (4.00 MiB), rank 2 started "
                        "reduce_scatter #123 (4.00 MiB); `shardmark run --check-collectives` finds where"));
  EXPECT_THAT(explain(four(waiting(2)), two_by_two()).message, Not(HasSubstr("differ")));
}

TEST(WatchFinding, TheTextStaysShortOnManyRanks) {
  std::vector<RankState> states;
  std::vector<std::string> hosts;
  std::vector<int> first;
  for (int rank = 0; rank < 8000; ++rank) {
    hosts.push_back("node" + std::to_string(rank / 8));
    first.push_back(rank / 8 * 8);
    states.push_back(rank % 3 == 0 ? computing(rank) : waiting(rank));
  }
  const Diagnosis finding = explain(states, make_node_map(hosts, first));
  EXPECT_LT(finding.message.size(), 3000U);
  EXPECT_LT(finding.reason.size(), 400U);
  EXPECT_THAT(finding.message, HasSubstr("behind are 2667 ranks in all: 0, 3, 6"));
}

TEST(WatchFinding, RangesOfRanks) {
  EXPECT_EQ(ranges({3}), "3");
  EXPECT_EQ(ranges({0, 1, 3, 4, 5, 9}), "0-1, 3-5, 9");
}

TEST(WatchSeats, NodesAreCountedByTheirLowestRanks) {
  const NodeMap node_map = make_node_map({"b", "a", "b", "a"}, {0, 1, 0, 1});
  EXPECT_EQ(node_map.node_of, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(node_map.names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(node_map.ranks_of[1], (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace shardmark

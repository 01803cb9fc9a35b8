// Simulates many watchdogs with a clock that the test advances: which one reports a hang, when, and how many
// messages that takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <set>

#include "comm/watch/hang_monitor.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double clock_s = 0;
double test_clock() { return clock_s; }

constexpr double kTimeoutS = 60, kEveryS = 0.4;

// Nodes with equally many ranks, all in one process. A message arrives when its receiver polls next.
class Cluster {
 public:
  Cluster(int nodes, int ranks_per_node) : num_ranks_(nodes * ranks_per_node) {
    clock_s = 1000;
    std::vector<std::string> hosts;
    std::vector<int> first;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      hosts.push_back("node" + std::to_string(rank / ranks_per_node));
      first.push_back(rank / ranks_per_node * ranks_per_node);
    }
    node_map_ = make_node_map(hosts, first);
    HangMonitorOptions options;
    options.timeout_s = kTimeoutS;
    for (int node = 0; node < nodes; ++node) {
      const std::shared_ptr<HeartbeatPage[]> pages(new HeartbeatPage[static_cast<size_t>(ranks_per_node)]());
      for (const int rank : node_map_.ranks_of[static_cast<size_t>(node)]) {
        members_.push_back(std::make_unique<Member>(*this, pages, rank, options));
        members_.back()->heartbeat.begin_point("a point");
      }
    }
  }

  Heartbeat& heartbeat(int rank) { return members_[static_cast<size_t>(rank)]->heartbeat; }
  void stop(int rank) { stopped_.insert(rank); }
  void wake(int rank) { stopped_.erase(rank); }
  void begin_all(const char* operation) {
    for (int rank = 0; rank < num_ranks_; ++rank)
      if (!stopped_.contains(rank)) wait_in(rank, operation);
  }
  void wait_in(int rank, const char* operation) {
    heartbeat(rank).waits_for(heartbeat(rank).started(operation, 1 << 20));
  }

  // Advances the clock until somebody ends the job, for at most so many seconds. Calls `change` at each tick
  // to simulate what ranks do.
  void run(double seconds, const std::function<void()>& change = {}) {
    const double end = clock_s + seconds;
    while (clock_s < end && !ended_by) {
      clock_s += kEveryS;
      if (change) change();
      for (int rank = 0; rank < num_ranks_; ++rank)
        if (!stopped_.contains(rank)) look(rank);
    }
  }

  std::vector<std::pair<int, Diagnosis>> said;  // the rank that reported, and its diagnosis
  std::vector<std::string> recorded;
  std::optional<int> ended_by;
  int64_t num_messages = 0;
  int most_at_a_look = std::numeric_limits<int>::max();  // messages that can arrive per poll

 private:
  struct Mailbox : Channel {
    explicit Mailbox(Cluster& all, int own) : cluster(all), rank(own) {}
    void send(int to, const std::string& bytes) override {
      ++cluster.num_messages;
      cluster.members_[static_cast<size_t>(to)]->channel.arrived.push_back({rank, bytes});
    }
    std::optional<Message> receive() override {
      if (arrived.empty() || num_taken == cluster.most_at_a_look) return {};
      ++num_taken;
      const Message message = arrived.front();
      arrived.pop_front();
      return message;
    }
    Cluster& cluster;
    int rank;
    int num_taken = 0;  // in this poll
    std::deque<Message> arrived;
  };
  struct Member {
    Member(Cluster& cluster, const std::shared_ptr<HeartbeatPage[]>& pages, int rank,
           const HangMonitorOptions& options)
        : heartbeats(pages,
                     cluster.node_map_
                         .ranks_of[static_cast<size_t>(cluster.node_map_.node_of[static_cast<size_t>(rank)])],
                     rank,
                     [&cluster](int64_t pid) {
                       return cluster.stopped_.contains(static_cast<int>(pid)) ? 'T' : 'S';
                     }),
          heartbeat(heartbeats.own(), test_clock),
          channel(cluster, rank),
          monitor(heartbeats, cluster.node_map_, rank, channel, options) {
      heartbeats.own().pid = rank;
      heartbeats.own().looked_s = clock_s;
    }
    NodeHeartbeats heartbeats;
    Heartbeat heartbeat;
    Mailbox channel;
    HangMonitor monitor;
  };

  void look(int rank) {
    members_[static_cast<size_t>(rank)]->channel.num_taken = 0;
    const HangMonitor::Order order = members_[static_cast<size_t>(rank)]->monitor.look(clock_s);
    if (order.say) said.emplace_back(rank, *order.say);
    if (order.record) recorded.push_back(*order.record);
    if (order.end && !ended_by) ended_by = rank;
  }

  int num_ranks_;
  NodeMap node_map_;
  std::set<int> stopped_;
  std::vector<std::unique_ptr<Member>> members_;
};

constexpr double kAllowedS = 5;  // seconds after the timeout

// Stops a rank when the others begin an operation. Returns the rank that reports the hang.
int speaker_when_stopped(Cluster& cluster, int rank) {
  cluster.stop(rank);
  cluster.begin_all("all_reduce");
  cluster.run(kTimeoutS);
  EXPECT_TRUE(cluster.said.empty());
  cluster.run(kAllowedS);
  EXPECT_EQ(cluster.said.size(), 1U);
  if (cluster.said.empty()) return -1;
  EXPECT_THAT(cluster.said[0].second.reason, HasSubstr("rank " + std::to_string(rank) + " on node"));
  cluster.run(2);
  EXPECT_TRUE(cluster.ended_by);
  EXPECT_EQ(cluster.said.size(), 1U);
  return cluster.said[0].first;
}

TEST(HangMonitor, TheFirstRankSpeaks) {
  Cluster cluster(3, 2);
  EXPECT_EQ(speaker_when_stopped(cluster, 3), 0);
  EXPECT_EQ(cluster.recorded.size(), 1U);
  EXPECT_EQ(cluster.ended_by, 0);
}

TEST(HangMonitor, WaitsAsLongAsAnswersComeIn) {
  Cluster cluster(40, 2);
  cluster.most_at_a_look =
      4;  // needs ten polls of 0.4 s, which is longer than the wait for nodes that do not respond
  cluster.stop(3);
  cluster.begin_all("all_reduce");
  cluster.run(kTimeoutS + kAllowedS + 5);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_THAT(cluster.said[0].second.reason, HasSubstr("rank 3 on node1"));
  EXPECT_THAT(cluster.said[0].second.message, Not(HasSubstr("does not respond")));
}

TEST(HangMonitor, ANeighbourSpeaksForTheFirstRank) {
  Cluster cluster(3, 2);
  EXPECT_EQ(speaker_when_stopped(cluster, 0), 1);
  EXPECT_TRUE(cluster.recorded.empty());  // rank 0 is stopped and cannot write
}

// Launchers wake stopped processes in order to end them.
TEST(HangMonitor, ARankThatWasStoppedItselfDoesNotSpeakAtOnce) {
  Cluster cluster(1, 1);
  cluster.stop(0);
  cluster.run(2 * kTimeoutS);
  cluster.wake(0);
  cluster.run(2);
  EXPECT_TRUE(cluster.said.empty());
  cluster.run(3);
  EXPECT_EQ(cluster.said.size(), 1U);
}

TEST(HangMonitor, TheSecondNodeSpeaksForTheFirst) {
  Cluster cluster(3, 1);
  EXPECT_EQ(speaker_when_stopped(cluster, 0), 1);
}

TEST(HangMonitor, ANodeOfOneRankThatIsStoppedIsNamed) {
  Cluster cluster(3, 1);
  EXPECT_EQ(speaker_when_stopped(cluster, 2), 0);
  EXPECT_THAT(cluster.said[0].second.message,
              HasSubstr("behind: rank 2 on node2: the node does not respond"));
}

TEST(HangMonitor, OneRankAloneIsItsOwnWatchdog) {
  Cluster cluster(1, 1);
  cluster.run(kTimeoutS + 1);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_EQ(cluster.ended_by, 0);
  EXPECT_EQ(cluster.num_messages, 0);
}

TEST(HangMonitor, OneSpeaksWhenTheFirstTwoNodesAreSilent) {
  Cluster cluster(20, 2);
  for (int rank = 0; rank < 4; ++rank) cluster.stop(rank);
  cluster.begin_all("all_reduce");
  cluster.run(kTimeoutS + 8);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_THAT(cluster.said[0].second.message,
              HasSubstr("behind: ranks 0-1 on node0: the node does not respond"));
  EXPECT_THAT(cluster.said[0].second.message,
              HasSubstr("behind: ranks 2-3 on node1: the node does not respond"));
  EXPECT_TRUE(cluster.ended_by);
}

TEST(HangMonitor, NothingIsSentWhileEveryNodeMoves) {
  Cluster cluster(3, 2);
  cluster.run(5 * kTimeoutS, [&] {
    for (const int rank : {0, 3, 4}) cluster.heartbeat(rank).step();
  });
  EXPECT_TRUE(cluster.said.empty());
  EXPECT_EQ(cluster.num_messages, 0);
}

// The others wait for one rank that works for a long time. There is no alarm and there are few messages. An
// alarm follows once that rank stands still.
TEST(HangMonitor, WaitsForARankThatMovesOnAnotherNode) {
  Cluster cluster(10, 4);
  for (int rank = 0; rank < 40; ++rank)
    if (rank != 22) cluster.wait_in(rank, "all_reduce");
  cluster.run(10 * kTimeoutS, [&] { cluster.heartbeat(22).stage("a long one"); });
  EXPECT_TRUE(cluster.said.empty());
  EXPECT_LE(cluster.num_messages, 10 * 2 * 2 * 10);
  cluster.run(kTimeoutS + kAllowedS);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_EQ(cluster.said[0].second.reason,
            "no progress for 60 s: rank 22 on node5 has not started all_reduce #1 "
            "(1.00 MiB) in a long one");
}

TEST(HangMonitor, NobodyWatchesBetweenPoints) {
  Cluster cluster(2, 2);
  for (int rank = 0; rank < 4; ++rank) cluster.heartbeat(rank).end_point();
  cluster.run(3 * kTimeoutS);
  EXPECT_TRUE(cluster.said.empty());
}

TEST(HangMonitor, RankZeroWritesDownWhatAnotherRankFound) {
  Cluster cluster(2, 1);
  cluster.heartbeat(0).end_point();  // has nothing to watch
  cluster.heartbeat(1).stage("a stage");
  cluster.run(kTimeoutS + kAllowedS + 2);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_EQ(cluster.said[0].first, 1);
  EXPECT_EQ(cluster.recorded, std::vector<std::string>{cluster.said[0].second.reason});
  EXPECT_EQ(cluster.ended_by, 0);
}

TEST(HangMonitor, AThousandNodesTakeFewMessages) {
  Cluster cluster(1000, 8);
  cluster.stop(4321);
  cluster.begin_all("all_reduce");
  cluster.run(kTimeoutS + kAllowedS);
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_THAT(cluster.said[0].second.reason, HasSubstr("rank 4321 on node540 (stopped by a signal)"));
  EXPECT_LT(cluster.said[0].second.message.size(), 1500U);
  EXPECT_LE(cluster.num_messages, 2 * 1000 + 8);
}

// When a point begins, its age must not be computed from the last heartbeat before it. This clock looks at
// the heartbeat page whenever the heartbeat asks for the time. It must never see a rank inside a point that
// seems to have been stuck for long.
const NodeHeartbeats* heartbeats_looked_at = nullptr;
double oldest_s = 0;
double looking_clock() {
  oldest_s = std::max(oldest_s, heartbeats_looked_at->least_age_s(clock_s));
  for (const RankState& state : heartbeats_looked_at->read(clock_s, 1))
    if (state.is_inside()) oldest_s = std::max(oldest_s, state.beat_age_s);
  return clock_s;
}

TEST(NodeHeartbeats, ABeginningPointIsNeverOld) {
  const NodeHeartbeats heartbeats(std::shared_ptr<HeartbeatPage[]>(new HeartbeatPage[1]()), {0}, 0,
                                  [](int64_t) { return 'S'; });
  heartbeats_looked_at = &heartbeats;
  Heartbeat heartbeat(heartbeats.own(), looking_clock);
  for (clock_s = 1000; clock_s < 4000; clock_s += 1000) {
    heartbeat.begin_point("a point");
    heartbeat.end_point();
  }
  EXPECT_EQ(oldest_s, 0);
}

}  // namespace
}  // namespace shardmark

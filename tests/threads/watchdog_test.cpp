// Tests watchdogs in their own threads, with pages that other threads write at the same time, and a channel
// between threads. Ranks are threads of one process, and nodes are sets of heartbeat pages.
#include "comm/watch/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>

namespace shardmark {
namespace {

using ::testing::HasSubstr;

// The test advances this clock, so that results do not depend on the speed of the machine.
std::atomic<double> clock_s = 0;
double test_clock() { return clock_s; }

constexpr double kTimeoutS = 10;

class Wire {
 public:
  explicit Wire(size_t ranks) : boxes_(ranks) {}
  void put(size_t to, Channel::Message message) {
    const std::lock_guard lock(mutex_);
    boxes_[to].push_back(std::move(message));
  }
  std::optional<Channel::Message> take(size_t rank) {
    const std::lock_guard lock(mutex_);
    if (boxes_[rank].empty()) return {};
    auto message = std::move(boxes_[rank].front());
    boxes_[rank].pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::vector<std::deque<Channel::Message>> boxes_;
};

class WireEnd : public Channel {
 public:
  WireEnd(Wire& wire, int rank) : wire_(wire), rank_(rank) {}
  void send(int to, const std::string& bytes) override { wire_.put(static_cast<size_t>(to), {rank_, bytes}); }
  std::optional<Message> receive() override { return wire_.take(static_cast<size_t>(rank_)); }

 private:
  Wire& wire_;
  int rank_;
};

// Nodes with two ranks each. A silent rank has a page but no watchdog.
class Job {
 public:
  Job(int nodes, const std::vector<int>& silent) : wire_(static_cast<size_t>(2 * nodes)) {
    clock_s = 1000;
    for (int rank = 0; rank < 2 * nodes; ++rank) {
      hosts_.push_back("node" + std::to_string(rank / 2));
      first_.push_back(rank / 2 * 2);
    }
    for (int rank = 0; rank < 2 * nodes; ++rank) {
      if (rank % 2 == 0) pages_.emplace_back(new HeartbeatPage[2]());
      HeartbeatPage& page = pages_.back()[rank % 2];
      heartbeats_.push_back(std::make_unique<Heartbeat>(page, test_clock));
      heartbeats_.back()->begin_point("a point");
      const bool is_silent = std::find(silent.begin(), silent.end(), rank) != silent.end();
      page.looked_s = is_silent ? 0 : clock_s.load();
    }
    for (int rank = 0; rank < 2 * nodes; ++rank) {
      if (std::find(silent.begin(), silent.end(), rank) == silent.end()) watchdogs_.push_back(watchdog(rank));
    }
  }

  Heartbeat& heartbeat(int rank) { return *heartbeats_[static_cast<size_t>(rank)]; }
  std::vector<std::string> said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  std::vector<std::string> recorded() {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  bool ended() const { return num_ended_ > 0; }

  // Advances the clock in small steps until `done`, and lets enough real time pass in between that every
  // watchdog can poll.
  void turn_until(const std::function<bool()>& done, const std::function<void()>& change = {}) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    while (!done() && std::chrono::steady_clock::now() < give_up) {
      clock_s = clock_s + 0.05;
      if (change) change();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(done()) << "given up after four minutes";
  }
  void turn(double seconds, const std::function<void()>& change = {}) {
    const double end = clock_s + seconds;
    turn_until([end] { return clock_s >= end; }, change);
  }

 private:
  std::unique_ptr<Watchdog> watchdog(int rank) {
    WatchdogOptions options;
    options.monitor.timeout_s = kTimeoutS;
    // 30 s are about a second of real time, because threads of a busy machine may be late.
    options.monitor.silent_s = options.monitor.answer_s = options.monitor.head_start_s = 30;
    options.every_s = 0.001;
    options.clock_s = test_clock;
    options.say = [this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      said_.push_back(message);
    };
    options.end_job = [this] { ++num_ended_; };
    const NodeMap node_map = make_node_map(hosts_, first_);
    const auto node = static_cast<size_t>(rank / 2);
    NodeHeartbeats heartbeats(pages_[node], node_map.ranks_of[node], rank, [](int64_t) { return 'S'; });
    auto made = std::make_unique<Watchdog>(rank, heartbeats, node_map, std::make_unique<WireEnd>(wire_, rank),
                                           std::move(options));
    made->on_finding([this](const std::string& reason) {
      const std::lock_guard lock(mutex_);
      recorded_.push_back(reason);
    });
    return made;
  }

  Wire wire_;
  std::vector<std::string> hosts_;
  std::vector<int> first_;
  std::vector<std::shared_ptr<HeartbeatPage[]>> pages_;
  std::vector<std::unique_ptr<Heartbeat>> heartbeats_;
  std::mutex mutex_;
  std::vector<std::string> said_, recorded_;
  std::atomic<int> num_ended_ = 0;
  std::vector<std::unique_ptr<Watchdog>> watchdogs_;  // last, because their threads use all members above
};

TEST(WatchdogThreads, NamesARankThatStandsStill) {
  Job job(2, {});
  for (int rank = 0; rank < 3; ++rank)
    job.heartbeat(rank).waits_for(job.heartbeat(rank).started("all_reduce", 4096));
  job.heartbeat(3).block("backward", 2);
  job.turn_until([&] { return job.ended(); });
  ASSERT_EQ(job.said().size(), 2U);
  EXPECT_THAT(job.said()[0], HasSubstr("behind: rank 3 on node1"));
  EXPECT_THAT(job.said()[0], HasSubstr("backward of block 2"));
  EXPECT_THAT(job.said()[0], HasSubstr("waiting for it: ranks 0-2, in all_reduce #1 (4.00 KiB)"));
  EXPECT_EQ(job.recorded(), std::vector<std::string>{job.said()[1]});
  EXPECT_THAT(job.said()[1], HasSubstr("rank 3 on node1 has not started all_reduce #1"));
}

TEST(WatchdogThreads, NamesARankWhoseWatchdogIsSilent) {
  Job job(2, {3});
  job.turn_until([&] { return job.ended(); });
  ASSERT_FALSE(job.said().empty());
  EXPECT_THAT(job.said()[0], HasSubstr("does not respond"));
  EXPECT_THAT(job.said()[0], HasSubstr("behind: rank 3 on node1"));
}

TEST(WatchdogThreads, ANeighbourTakesTheFirstRanksPlace) {
  Job job(2, {0});
  job.turn_until([&] { return job.ended(); });
  ASSERT_FALSE(job.said().empty());
  EXPECT_THAT(job.said()[0], HasSubstr("behind: rank 0 on node0"));
  EXPECT_TRUE(job.recorded().empty());
}

TEST(WatchdogThreads, TheSecondNodeTakesTheFirstNodesPlace) {
  Job job(3, {0, 1});
  job.turn_until([&] { return job.ended(); });
  ASSERT_FALSE(job.said().empty());
  EXPECT_THAT(job.said()[0], HasSubstr("behind: ranks 0-1 on node0: the node does not respond"));
}

// Ranks write their pages from their own threads while watchdogs read them.
TEST(WatchdogThreads, NeverBarksWhileARankMoves) {
  Job job(2, {});
  std::atomic<bool> ends = false;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&job, &ends, rank] {
      while (!ends) {
        job.heartbeat(rank).step();
        const int64_t number = job.heartbeat(rank).started("all_gather", 1024);
        job.heartbeat(rank).block("forward", number % 7);
        job.heartbeat(rank).waits_for(number);
        job.heartbeat(rank).completed(number);
        std::this_thread::yield();
      }
    });
  }
  // Rank 3 makes progress with every tick of the clock, however late the threads of the other ranks are.
  job.turn(5 * kTimeoutS, [&] { job.heartbeat(3).step(); });
  ends = true;
  ranks.clear();
  EXPECT_TRUE(job.said().empty());
  EXPECT_FALSE(job.ended());
}

TEST(WatchdogThreads, WithoutATimeoutThereIsNoThread) {
  const NodeMap node_map = make_node_map({"node0"}, {0});
  const std::shared_ptr<HeartbeatPage[]> pages(new HeartbeatPage[1]());
  WatchdogOptions options;
  options.monitor.timeout_s = 0;
  options.clock_s = test_clock;
  Wire wire(1);
  Watchdog watchdog(0, NodeHeartbeats(pages, {0}, 0), node_map, std::make_unique<WireEnd>(wire, 0), options);
  pages[0].looked_s = -1;
  watchdog.heartbeat().begin_point("a point");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pages[0].looked_s, -1);
}

}  // namespace
}  // namespace shardmark

// RANKS 1 2 3
// Tests the shared memory and the messages that watchdogs use between processes, and a watchdog that runs on
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/mpi/watch.h"
#include "launch/leftovers.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

class WatchTest : public ::testing::Test {
 protected:
  HostGroup world_ = HostGroup::world();

  // Waits until the condition holds, for at most a minute.
  static bool becomes(const std::function<bool()>& so) {
    for (int i = 0; i < 6000 && !so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return so();
  }
};

TEST_F(WatchTest, PagesAreSharedAndLeaveNoName) {
  const auto pages = share_pages(world_);
  ASSERT_NE(pages, nullptr);
  for (int rank = 0; rank < world_.size(); ++rank) EXPECT_EQ(pages[rank].at_s, 0);
  world_.barrier();
  Heartbeat heartbeat(pages[world_.rank()]);
  heartbeat.begin_point("a point of rank " + std::to_string(world_.rank()));
  world_.barrier();
  for (int rank = 0; rank < world_.size(); ++rank)
    EXPECT_EQ(pages[rank].point.get(), "a point of rank " + std::to_string(rank));
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_NE(entry.path().filename().string().rfind(shared_name_prefix() + std::to_string(getpid()), 0), 0U);
}

TEST_F(WatchTest, MessagesArriveWholeAndInOrder) {
  const auto channel = make_mpi_channel(world_, 5000);
  EXPECT_FALSE(channel->receive());
  world_.barrier();
  const int next = (world_.rank() + 1) % world_.size();
  const int before = (world_.rank() + world_.size() - 1) % world_.size();
  for (int i = 0; i < 10; ++i)
    channel->send(next, std::string(500 * static_cast<size_t>(i), static_cast<char>('a' + i)));
  std::vector<Channel::Message> received;
  EXPECT_TRUE(becomes([&] {
    while (auto message = channel->receive()) received.push_back(std::move(*message));
    return received.size() == 10;
  }));
  for (size_t i = 0; i < received.size(); ++i) {
    EXPECT_EQ(received[i].from, before);
    EXPECT_EQ(received[i].bytes, std::string(500 * i, static_cast<char>('a' + i)));
  }
  world_.barrier();
}

TEST_F(WatchTest, EveryRankKnowsWhereTheOthersAre) {
  const NodeMap node_map = gather_node_map(world_, "a host");
  EXPECT_EQ(node_map.names, std::vector<std::string>{"a host"});
  EXPECT_EQ(std::ssize(node_map.ranks_of[0]), world_.size());
}

TEST_F(WatchTest, TheFirstRankTellsWhoIsBehind) {
  std::atomic<bool> ended = false;
  std::string reason;
  const auto watchdog = make_watchdog(world_, "a host", 1, [&] { ended = true; });
  watchdog->on_finding([&](const std::string& text) { reason = text; });
  const int last = world_.size() - 1;
  world_.barrier();
  watchdog->heartbeat().begin_point("a test");
  if (world_.rank() == last)
    watchdog->heartbeat().stage("a late stage");
  else
    watchdog->heartbeat().meet("an early stage");
  if (world_.rank() == 0) {
    EXPECT_TRUE(becomes([&] { return ended.load(); }));
    EXPECT_THAT(reason, HasSubstr("rank " + std::to_string(last) + " on a host is in a late stage"));
  }
  world_.sleep_barrier();
  EXPECT_EQ(ended, world_.rank() == 0);
}

TEST_F(WatchTest, WithoutATimeoutItOnlyKeepsNotes) {
  const auto watchdog = make_watchdog(world_, "a host", 0, [] { std::abort(); });
  watchdog->heartbeat().begin_point("a test");
  watchdog->heartbeat().step();
}

}  // namespace
}  // namespace shardmark

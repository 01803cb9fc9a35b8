// Tests the engine on ranks that are threads, over a network that delays and reorders messages. The engine is
// driven by its caller or by its own thread.
#include "comm/pt2pt/engine/engine.h"

#include <gtest/gtest.h>

#include <latch>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "engine_jobs.h"
#include "network.h"

namespace shardmark {
namespace {

struct Setting {
  int num_ranks;
  bool own_thread;
};

class EngineOf : public ::testing::TestWithParam<Setting> {
 protected:
  // Runs body(place, engine) on every rank. Engines are destroyed when all ranks have finished.
  void on_engines(const std::function<void(Place, Engine&)>& body) {
    const auto [num_ranks, own_thread] = GetParam();
    std::latch finished(num_ranks);
    on_ranks(num_ranks, [&, own_thread = own_thread, num_ranks = num_ranks](int rank) {
      const std::unique_ptr<Wire> wire = network_.wire(rank);
      Engine engine(*wire, own_thread);
      EXPECT_EQ(engine.has_thread(), own_thread);
      try {
        body({rank, num_ranks}, engine);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      finished.arrive_and_wait();
    });
  }
  Network network_{1};
};

std::shared_ptr<Values> counting_from(int32_t first, size_t length) {
  auto values = std::make_shared<Values>(length);
  std::iota(values->begin(), values->end(), first);
  return values;
}

// Waits as a training step does: polls now and then between computing, and waits at the end.
void poll_then_wait(Engine& engine, const RunningJob& job) {
  for (int i = 0; i < 5 && !job.done(); ++i) engine.progress();
  engine.wait(job);
}

TEST_P(EngineOf, GathersInChunks) {
  on_engines([](Place place, Engine& engine) {
    for (const size_t length : {1, 64, 65, 2000}) {
      const auto all = std::make_shared<Values>(length * static_cast<size_t>(place.size));
      poll_then_wait(engine, *engine.start(all_gather(place, all, counting_from(place.rank * 5000, length))));
      for (int rank = 0; rank < place.size; ++rank) {
        const auto begin = all->begin() + static_cast<int64_t>(length) * rank;
        EXPECT_EQ(Values(begin, begin + static_cast<int64_t>(length)), *counting_from(rank * 5000, length));
      }
    }
  });
}

TEST_P(EngineOf, PassesOnWhatARoundBrought) {
  on_engines([](Place place, Engine& engine) {
    for (int32_t turn = 0; turn < 20; ++turn) {
      const auto all = std::make_shared<Values>(place.size, -1);
      (*all)[static_cast<size_t>(place.rank)] = turn + place.rank;
      poll_then_wait(engine, *engine.start(ring(place, all)));
      EXPECT_EQ(*all, *counting_from(turn, static_cast<size_t>(place.size)));
    }
  });
}

TEST_P(EngineOf, HandsOutOnlyWhatIsReduced) {
  on_engines([](Place place, Engine& engine) {
    const size_t length = static_cast<size_t>(place.size) * 500;
    const auto values = counting_from(place.rank, length);
    poll_then_wait(engine, *engine.start(all_reduce(place, values)));
    for (size_t i = 0; i < length; ++i) {
      const int32_t sum = static_cast<int32_t>(i) * place.size + place.size * (place.size - 1) / 2;
      ASSERT_EQ((*values)[i], sum) << "element " << i << " on rank " << place.rank;
    }
  });
}

// There are more chunks than tags, and jobs of all kinds in flight together. Each rank waits for them in a
// different order.
TEST_P(EngineOf, MovesManySmallJobs) {
  constexpr int kInFlight = 12;
  constexpr int kTurns = 60;
  on_engines([](Place place, Engine& engine) {
    for (int turn = 0; turn < kTurns; ++turn) {
      std::vector<std::shared_ptr<Values>> values;
      std::vector<std::shared_ptr<const RunningJob>> jobs;
      for (int i = 0; i < kInFlight; ++i) {
        values.push_back(std::make_shared<Values>(place.size, i % 2 == 0 ? turn + i : -1));
        values.back()->at(static_cast<size_t>(place.rank)) = turn + i;
        jobs.push_back(
            engine.start(i % 2 == 0 ? all_reduce(place, values.back()) : ring(place, values.back())));
      }
      for (int i = 0; i < kInFlight; ++i) {
        const auto next = static_cast<size_t>(i * 5 + place.rank) % kInFlight;
        poll_then_wait(engine, *jobs[next]);
        const int32_t one = turn + static_cast<int32_t>(next);
        ASSERT_EQ(*values[next], Values(place.size, next % 2 == 0 ? one * place.size : one));
      }
    }
  });
}

TEST_P(EngineOf, GivesScratchBack) {
  on_engines([this](Place place, Engine& engine) {
    engine.wait(*engine.start(all_reduce(place, counting_from(0, static_cast<size_t>(place.size) * 500))));
    EXPECT_GT(network_.memory_bytes(), 0);
    engine.trim();
    engine.wait(*engine.start(all_reduce(place, counting_from(0, static_cast<size_t>(place.size) * 500))));
    engine.trim();
  });
  EXPECT_EQ(network_.memory_bytes(), 0);
}

// The data of a job lives as long as the engine or the caller's handle refers to the job, and no longer.
TEST_P(EngineOf, KeepsWhatAJobHolds) {
  on_engines([](Place place, Engine& engine) {
    auto values = counting_from(place.rank, static_cast<size_t>(place.size) * 200);
    const std::weak_ptr<Values> watched = values;
    auto job = engine.start(all_reduce(place, values));
    values.reset();
    engine.wait(*job);
    EXPECT_FALSE(watched.expired());
    job.reset();
    // After this job, the engine's thread has released the earlier one as well.
    engine.wait(*engine.start(ring(place, std::make_shared<Values>(place.size))));
    EXPECT_TRUE(watched.expired());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineOf,
                         ::testing::Values(Setting{2, false}, Setting{2, true}, Setting{3, false},
                                           Setting{4, false}, Setting{4, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.num_ranks) +
                                  (info.param.own_thread ? "_by_thread" : "_by_caller");
                         });

// One rank of two, whose peer does nothing.
class LonelyEngine : public ::testing::TestWithParam<bool> {
 protected:
  Network network_{2};
  std::unique_ptr<Wire> wire_ = network_.wire(0);
  std::optional<Engine> engine_{std::in_place, *wire_, GetParam()};
  std::shared_ptr<Values> values_ = std::make_shared<Values>(8, 7);
};

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const SystemError& error) {
    return error.what();
  }
  return "none";
}

TEST_P(LonelyEngine, AFailedLinkIsToldToWhoeverComesNext) {
  const auto job = engine_->start(wait_for(1, values_));
  network_.fail(0);
  const std::string down = "the link of rank 0 is down";
  EXPECT_EQ(failure([&] { engine_->wait(*job); }), down);
  EXPECT_EQ(failure([&] { engine_->progress(); }), down);
  EXPECT_EQ(failure([&] { engine_->start(wait_for(1, values_)); }), down);
}

TEST_P(LonelyEngine, AJobThatFailsEndsTheEngine) {
  const Job bad{1, [](Chunk& chunk) -> bool {
                  throw SystemError("no memory in round " + std::to_string(chunk.round));
                }};
  EXPECT_EQ(failure([&] { engine_->wait(*engine_->start(bad)); }), "no memory in round 0");
  EXPECT_EQ(failure([&] { engine_->progress(); }), "no memory in round 0");
}

TEST_P(LonelyEngine, AChunkWithoutAnEndIsNoticed) {
  const Job endless{1, [](Chunk&) { return true; }};
  EXPECT_THROW(engine_->wait(*engine_->start(endless)), ContractError);
}

// Once the engine is destroyed, the memory of a message that may still arrive must not be touched.
TEST_P(LonelyEngine, EndsWithWorkInFlight) {
  const std::weak_ptr<Values> watched = values_;
  std::vector<std::shared_ptr<const RunningJob>> jobs;
  for (int i = 0; i < 10; ++i) jobs.push_back(engine_->start(wait_for(1, values_)));
  engine_->progress();
  engine_.reset();
  jobs.clear();
  values_.reset();
  EXPECT_TRUE(watched.expired());
  const std::unique_ptr<Wire> peer = network_.wire(1);
  const std::unique_ptr<Messages> late = peer->messages();
  const Values sent(8, 9);
  for (int i = 0; i < 10; ++i) late->send(sent.data(), 8 * kValueBytes, 0, 0);
  for (int i = 0; i < 100; ++i) late->complete();
  late->cancel();
}

TEST_P(LonelyEngine, AJobWithoutMessagesIsDone) {
  int num_advanced = 0;
  const Job local{3, [&](Chunk& chunk) { return ++num_advanced, chunk.round < 2; }};
  engine_->wait(*engine_->start(local));
  EXPECT_EQ(num_advanced, 9);
  EXPECT_TRUE(engine_->start(Job{})->done());
}

INSTANTIATE_TEST_SUITE_P(Moved, LonelyEngine, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "by_thread" : "by_caller"; });

}  // namespace
}  // namespace shardmark

// Moves operations between ranks. An operation is a job, cut into chunks; a chunk is a few rounds of messages
// with local work between them. Chunks start in the order of the jobs, a few are in flight at a time, and
// whoever polls or waits moves all of them; or the engine's own thread does, where a core is free for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/mpi/engine/messages.h"

namespace shardmark {

// A chunk in flight: a slot of the engine that a job fills with messages.
class Chunk {
 public:
  explicit Chunk(Wire& wire) : wire_(&wire), messages_(wire.messages()) {}

  int64_t index = 0;  // of the job's chunks
  int round = 0;      // rounds before this one are complete

  void send(const void* data, int64_t bytes, int peer);
  void receive(void* data, int64_t bytes, int peer);
  char* scratch(int64_t bytes);  // stays until the chunk is done

 private:
  friend class Engine;
  Wire* wire_;
  std::unique_ptr<Messages> messages_;
  int num_posted_ = 0;  // messages of this round
  int64_t sequence_ = 0;
  int tag_ = 0;
  std::shared_ptr<char> scratch_;
  int64_t scratch_bytes_ = 0;
  std::shared_ptr<struct RunningJob> job_;  // null: the slot is free
};

// advance(chunk) posts the messages of chunk.round, after the local work on what the round before has
// brought; false when nothing is left. It is called in round 0 in the same order on all ranks. What it has
// captured is kept alive until the job is done.
struct Job {
  int64_t num_chunks = 0;
  std::function<bool(Chunk&)> advance;
  int64_t lag = 0;  // where not 0: chunk i starts only after chunk i - lag is done on this rank
};

struct RunningJob : Job {
  explicit RunningJob(Job job) : Job(std::move(job)) {}
  bool done() const { return num_done.load(std::memory_order_acquire) == num_chunks; }

  int64_t num_started = 0;           // chunks
  std::atomic<int64_t> num_done{0};  // chunks; whoever sees the last one sees what it has written
};

// Note [Communication thread]: with a thread, everything below "moved by" belongs to that thread alone; the
// caller hands jobs over through `arrived_` and sees them end in RunningJob::num_done.
//
// Note [Siblings]: a rank that waits in one communicator moves those that were split off it, or off the same
// one, as well: the stages of a pipeline wait for each other in several at once, and a peer may wait for a
// message of this rank's that has not been handed over whole.
//
// One caller at a time. A failure of a message or of a job ends the engine: it is thrown to whoever starts,
// polls or waits from then on.
class Engine {
 public:
  using Siblings = std::shared_ptr<std::vector<Engine*>>;
  Engine(Wire& wire, bool own_thread, Siblings siblings = std::make_shared<std::vector<Engine*>>());
  ~Engine();  // what is in flight is given up
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool has_thread() const { return thread_.joinable(); }
  const Siblings& siblings() const { return siblings_; }
  std::shared_ptr<const RunningJob> start(Job job);  // short ones may be done at once
  void progress();
  void wait(const RunningJob& job);
  void trim();  // frees the scratch memory of all slots; nothing is in flight

 private:
  void serve(const std::stop_token& stop);
  void keep_failure();  // the exception that is being handled
  void throw_failure();

  void move();
  void fill_slots();
  bool tag_is_free() const;
  bool may_start(const RunningJob& job) const;
  bool advance(Chunk& slot);
  void finish(Chunk& slot);

  Siblings siblings_;  // this one among them

  std::exception_ptr failure_;  // written before failed_
  std::atomic<bool> failed_ = false;

  std::mutex mutex_;  // of arrived_
  std::condition_variable_any arrival_;
  std::vector<std::shared_ptr<RunningJob>> arrived_;

  // Moved by the caller, or by the thread.
  std::vector<Chunk> slots_;
  std::deque<std::shared_ptr<RunningJob>> waiting_;  // with chunks that have not started
  int64_t next_sequence_ = 0;                        // of chunks, the same on all ranks: makes the tags
  int num_busy_ = 0;

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace shardmark

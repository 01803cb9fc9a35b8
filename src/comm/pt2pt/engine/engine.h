// Moves operations between ranks without blocking. An operation is a job, divided into chunks. A chunk is a
// few rounds of messages with local work between them; it occupies one of a few slots while it is in flight.
// Chunks start in the order of the jobs, which is the same on every rank. Dividing into chunks lets the
// messages of one chunk overlap with the reduction of another, and keeps the data of a reduction in cache.
// Whoever polls or waits makes progress on all chunks in flight; if a core is free for it, the engine's own
// thread does.
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

namespace shardmark {

// A set of messages that are in flight together. Two messages with the same sender, receiver and tag arrive
// in the order in which they were posted.
class Messages {
 public:
  virtual ~Messages() = default;
  // Start a message without waiting. The memory belongs to the message until it is complete.
  virtual void send(const void* data, int64_t bytes, int peer, int tag) = 0;
  virtual void receive(void* data, int64_t bytes, int peer, int tag) = 0;
  // Makes progress. Returns true when all messages are complete; then new ones may be posted.
  virtual bool complete() = 0;
  // Cancels the messages in flight. Returns false if that is not possible; then their memory and this object
  // must live until the process ends.
  virtual bool cancel() = 0;
};

// What an engine sends over: MPI in the program (comm/pt2pt/transport.cpp), threads of one process in tests.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::unique_ptr<Messages> messages() = 0;         // used by one thread at a time
  virtual std::shared_ptr<char> memory(int64_t bytes) = 0;  // scratch memory for chunks
};

// A chunk in flight. It is a slot of the engine that a job fills with messages.
class Chunk {
 public:
  explicit Chunk(Wire& wire) : wire_(&wire), messages_(wire.messages()) {}

  int64_t index = 0;  // among the job's chunks
  int round = 0;      // number of rounds that are complete

  void send(const void* data, int64_t bytes, int peer);
  void receive(void* data, int64_t bytes, int peer);
  // Memory of at least this size that stays valid until the chunk is done.
  char* scratch(int64_t bytes);

 private:
  friend class Engine;
  Wire* wire_;
  std::unique_ptr<Messages> messages_;
  int num_posted_ = 0;  // in this round
  int64_t sequence_ = 0;
  int tag_ = 0;
  std::shared_ptr<char> scratch_;
  int64_t scratch_bytes_ = 0;
  std::shared_ptr<struct RunningJob> job_;  // nullptr: the slot is free
};

// advance(chunk) first does the local work on what the previous round has received, then posts the messages
// of chunk.round. It returns false when the chunk is complete. Calls for round 0 come in the same order on
// all ranks. What the function has captured lives until the job is done.
struct Job {
  int64_t num_chunks = 0;
  std::function<bool(Chunk&)> advance;
  // If not 0, chunk i starts only after chunk i - lag is done on this rank.
  int64_t lag = 0;
};

struct RunningJob : Job {
  explicit RunningJob(Job job) : Job(std::move(job)) {}
  bool done() const { return num_done.load(std::memory_order_acquire) == num_chunks; }

  int64_t num_started = 0;  // chunks
  // Counts complete chunks. Whoever reads the last one also sees what that chunk has written (release and
  // acquire).
  std::atomic<int64_t> num_done{0};
};

// Note [Communication thread]: with a thread, the members under "progress" below belong to that thread alone.
// The caller hands jobs over through `arrived_` and sees them complete in RunningJob::num_done.
//
// Note [Siblings]: a rank that waits in one communicator also makes progress in those that were split off it
// or off the same one. The stages of a pipeline wait for each other in several communicators at once, and a
// peer may be waiting for a message of this rank that is only partly sent.
//
// Only one thread may call the engine at a time. If a message or a job fails, the engine is broken: whoever
// starts, polls or waits from then on gets that exception.
class Engine {
 public:
  using Siblings = std::shared_ptr<std::vector<Engine*>>;
  Engine(Wire& wire, bool own_thread, Siblings siblings = std::make_shared<std::vector<Engine*>>());
  ~Engine();  // abandons what is in flight
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool has_thread() const { return thread_.joinable(); }
  const Siblings& siblings() const { return siblings_; }
  std::shared_ptr<const RunningJob> start(Job job);  // short jobs may be complete on return
  void progress();
  void wait(const RunningJob& job);
  // Frees the scratch memory of all slots. Nothing may be in flight.
  void trim();

 private:
  void serve(const std::stop_token& stop);
  void keep_failure();  // stores the current exception
  void throw_failure();

  void move();
  void fill_slots();
  bool tag_is_free() const;
  bool may_start(const RunningJob& job) const;
  bool advance(Chunk& slot);
  void finish(Chunk& slot);

  Siblings siblings_;  // includes this engine

  std::exception_ptr failure_;  // written before failed_
  std::atomic<bool> failed_ = false;

  std::mutex mutex_;  // guards arrived_
  std::condition_variable_any arrival_;
  std::vector<std::shared_ptr<RunningJob>> arrived_;

  // Used to make progress: by the caller, or by the thread if there is one.
  std::vector<Chunk> slots_;
  std::deque<std::shared_ptr<RunningJob>> waiting_;  // have chunks that have not started
  // Counts the chunks that have started. It is the same on all ranks, and tags are derived from it.
  int64_t next_sequence_ = 0;
  int num_busy_ = 0;

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace shardmark

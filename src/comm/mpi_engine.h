// Moves operations over MPI. An operation is cut into chunks; a chunk is a few rounds of messages with local
// work between them. Chunks start in the order of the operations, a few are in flight at a time, and whoever
// polls or waits moves all of them; or the engine's own thread does, where a core is free for it.
#pragma once

#include <mpi.h>

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

#include "comm/communicator.h"
#include "comm/host_group.h"
#include "device/meter.h"

namespace shardmark {

// Page-aligned host memory, counted by the meter as `use` for as long as it lives.
std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use);

// A chunk in flight: a slot of the engine that a job fills with messages.
class Chunk {
 public:
  int64_t index = 0;  // of the job's chunks
  int round = 0;      // rounds before this one are complete

  void send(const void* data, int64_t bytes, int peer);
  void receive(void* data, int64_t bytes, int peer);
  char* scratch(int64_t bytes);  // stays until the chunk is done

 private:
  friend class MpiEngine;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int64_t sequence_ = 0;
  int tag_ = 0;
  std::vector<MPI_Request> requests_;
  std::shared_ptr<char> scratch_;
  int64_t scratch_bytes_ = 0;
  std::shared_ptr<struct Flight> flight_;  // null: the slot is free
};

// advance(chunk) posts the messages of chunk.round, after the local work on what the round before has
// brought; false when nothing is left. It is called in round 0 in the same order on all ranks.
struct Job {
  int64_t num_chunks = 0;
  std::function<bool(Chunk&)> advance;
  std::vector<at::Tensor> tensors;  // kept alive until the job is done
  int64_t lag = 0;  // where not 0: chunk i starts only after chunk i - lag is done on this rank
};

// A job under way.
struct Flight {
  explicit Flight(Job started) : job(std::move(started)) {}
  bool done() const { return num_done.load(std::memory_order_acquire) == job.num_chunks; }

  Job job;
  int64_t num_started = 0;           // chunks
  std::atomic<int64_t> num_done{0};  // chunks; whoever sees the last one sees what it has written
};

// Note [Communication thread]: with MovedBy::thread everything below "moved by" belongs to that thread alone;
// the caller hands jobs over through `arrived_` and sees them end in Flight::num_done. A failure of the
// thread is thrown to whoever starts, polls or waits next.
class MpiEngine {
 public:
  MpiEngine(HostGroup group, MovedBy moved_by);
  ~MpiEngine();
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;

  const HostGroup& group() const { return group_; }
  MovedBy moved_by() const { return thread_.joinable() ? MovedBy::thread : MovedBy::caller; }
  std::unique_ptr<Operation> start(Job job);
  void progress();
  void wait(const Flight& flight);
  void trim();                                // frees the scratch memory of all slots
  void abort() noexcept { aborted_ = true; }  // nothing moves any more; waiting throws

 private:
  void serve(const std::stop_token& stop);
  void throw_failure();

  void move();
  void fill_slots();
  bool tag_is_free() const;
  bool may_start(const Flight& flight) const;
  bool advance(Chunk& slot);
  void finish(Chunk& slot);

  HostGroup group_;
  std::atomic<bool> aborted_ = false;

  std::mutex mutex_;  // of arrived_
  std::condition_variable_any arrival_;
  std::vector<std::shared_ptr<Flight>> arrived_;
  std::exception_ptr failure_;  // written before failed_
  std::atomic<bool> failed_ = false;

  // Moved by the caller, or by the thread.
  std::vector<Chunk> slots_;
  std::deque<std::shared_ptr<Flight>> waiting_;  // with chunks that have not started
  int64_t next_sequence_ = 0;                    // of chunks, the same on all ranks: makes the tags
  int num_busy_ = 0;

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace shardmark

// Moves operations over MPI without a thread. An operation is cut into chunks; a chunk is a few rounds of
// messages with local work between them. Chunks start in the order of the operations, a few are in flight at
// a time, and whoever polls or waits moves all of them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
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
  std::shared_ptr<struct Job> job_;  // null: the slot is free
};

// advance(chunk) posts the messages of chunk.round, after the local work on what the round before has
// brought; false when nothing is left. It is called in round 0 in the same order on all ranks.
struct Job {
  int64_t num_chunks = 0;
  std::function<bool(Chunk&)> advance;
  std::vector<at::Tensor> tensors;  // kept alive until the job is done
  int64_t lag = 0;  // where not 0: chunk i starts only after chunk i - lag is done on this rank
  int64_t num_started = 0;
  int64_t num_done = 0;
  bool done() const { return num_done == num_chunks; }
};

class MpiEngine {
 public:
  explicit MpiEngine(HostGroup group);
  ~MpiEngine();
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;

  const HostGroup& group() const { return group_; }
  std::unique_ptr<Operation> start(Job job);
  void progress();
  void wait(const Job& job);
  void abort() noexcept { aborted_ = true; }  // nothing moves any more; waiting throws

 private:
  void fill_slots();
  bool tag_is_free() const;
  bool may_start(const Job& job) const;
  bool advance(Chunk& slot);
  void finish(Chunk& slot);

  HostGroup group_;
  std::vector<Chunk> slots_;
  std::deque<std::shared_ptr<Job>> waiting_;  // jobs with chunks that have not started
  int64_t next_sequence_ = 0;                 // of chunks, the same on all ranks: makes the tags
  int num_busy_ = 0;
  bool aborted_ = false;
};

}  // namespace shardmark

// The engine of the mpi transport, and its memory.
#include "comm/mpi_engine.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "base/units.h"

namespace shardmark {
namespace {

// Enough to keep a peer busy while this rank reduces; measured, see README.md.
constexpr int kNumSlots = 4;
constexpr int kMaxRounds = 64;                     // of one chunk: a tree over 2^30 ranks needs fewer
constexpr int kNumSequences = 32768 / kMaxRounds;  // every MPI has at least 32768 tags
constexpr int kSpins = 200;                        // fruitless polls before the core is offered to others
constexpr int64_t kHugePage = 2 << 20;

class MpiOperation final : public Operation {
 public:
  MpiOperation(MpiEngine& engine, std::shared_ptr<Flight> flight)
      : engine_(engine), flight_(std::move(flight)) {}
  bool poll() override {
    if (!flight_->done()) engine_.progress();
    return flight_->done();
  }
  void wait() override { engine_.wait(*flight_); }

 private:
  MpiEngine& engine_;
  std::shared_ptr<Flight> flight_;
};

}  // namespace

std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use) {
  // Huge pages make a peer's read of our memory cheaper: fewer pages to pin.
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  const int64_t size = (bytes + alignment - 1) / alignment * alignment;
  meter::add(bytes, use);
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size));
  if (memory == nullptr && size > 0) {
    meter::remove(bytes, use);
    throw OutOfMemory("the system gave no " + format_bytes(static_cast<double>(bytes)));
  }
  if (alignment == kHugePage) madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);  // a hint: may fail
  return {static_cast<char*>(memory), [bytes, use](char* data) {
            std::free(data);
            meter::remove(bytes, use);
          }};
}

void Chunk::send(const void* data, int64_t bytes, int peer) {
  if (bytes == 0) return;
  MPI_CHECK(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag_ + round, comm_,
                      &requests_.emplace_back()));
}

void Chunk::receive(void* data, int64_t bytes, int peer) {
  if (bytes == 0) return;
  MPI_CHECK(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag_ + round, comm_,
                      &requests_.emplace_back()));
}

char* Chunk::scratch(int64_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    scratch_ = host_memory(bytes, MemoryUse::other);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

MpiEngine::MpiEngine(HostGroup group, MovedBy moved_by) : group_(std::move(group)), slots_(kNumSlots) {
  for (Chunk& slot : slots_) slot.comm_ = group_.mpi();
  if (moved_by == MovedBy::thread && group_.size() > 1)
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

MpiEngine::~MpiEngine() {
  thread_ = {};  // ends and joins
  // After an abort messages may still be on their way into buffers: those are left to the end of the process.
  if (num_busy_ > 0) static_cast<void>(new (std::nothrow) std::vector<Chunk>(std::move(slots_)));
}

std::unique_ptr<Operation> MpiEngine::start(Job job) {
  if (job.num_chunks == 0) return nullptr;
  auto flight = std::make_shared<Flight>(std::move(job));
  if (moved_by() == MovedBy::thread) {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(flight);
    arrival_.notify_one();
  } else {
    waiting_.push_back(flight);
  }
  progress();
  if (flight->done()) return nullptr;
  return std::make_unique<MpiOperation>(*this, std::move(flight));
}

// The communication thread: sleeps while nothing is in flight.
void MpiEngine::serve(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        const auto has_work = [&] { return num_busy_ > 0 || !waiting_.empty() || !arrived_.empty(); };
        if (!arrival_.wait(lock, stop, has_work)) return;
        waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
        arrived_.clear();
      }
      move();
    }
  } catch (...) {
    failure_ = std::current_exception();
    failed_ = true;
  }
}

void MpiEngine::trim() {
  for (Chunk& slot : slots_) {
    slot.scratch_.reset();
    slot.scratch_bytes_ = 0;
  }
}

void MpiEngine::throw_failure() {
  if (failed_) std::rethrow_exception(failure_);
}

bool MpiEngine::advance(Chunk& slot) {
  while (slot.flight_->job.advance(slot)) {
    ENSURE(slot.round < kMaxRounds, "a chunk has too many rounds");
    if (!slot.requests_.empty()) return true;
    ++slot.round;  // nothing to wait for: one rank, or a rank without a part in this round
  }
  return false;
}

// Two chunks in flight never share a tag: a message of the later one could be taken for one of the earlier.
bool MpiEngine::tag_is_free() const {
  return std::all_of(slots_.begin(), slots_.end(), [this](const Chunk& slot) {
    return !slot.flight_ || next_sequence_ - slot.sequence_ < kNumSequences;
  });
}

bool MpiEngine::may_start(const Flight& flight) const {
  const int64_t before = flight.num_started - flight.job.lag;
  if (flight.job.lag == 0 || before < 0) return tag_is_free();
  return tag_is_free() && std::none_of(slots_.begin(), slots_.end(), [&](const Chunk& slot) {
           return slot.flight_.get() == &flight && slot.index == before;
         });
}

void MpiEngine::fill_slots() {
  for (Chunk& slot : slots_) {
    while (!slot.flight_ && !waiting_.empty() && may_start(*waiting_.front())) {
      const std::shared_ptr<Flight> flight = waiting_.front();
      slot.flight_ = flight;
      slot.index = flight->num_started++;
      slot.round = 0;
      slot.sequence_ = next_sequence_++;
      slot.tag_ = static_cast<int>(slot.sequence_ % kNumSequences) * kMaxRounds;
      if (flight->num_started == flight->job.num_chunks) waiting_.pop_front();
      ++num_busy_;
      if (advance(slot)) break;
      finish(slot);
    }
  }
}

void MpiEngine::finish(Chunk& slot) {
  const auto flight = std::move(slot.flight_);
  flight->num_done.fetch_add(1, std::memory_order_release);
  --num_busy_;
}

void MpiEngine::progress() {
  throw_failure();
  if (moved_by() == MovedBy::caller) move();
}

void MpiEngine::move() {
  if (aborted_) throw SystemError("the communicator was aborted");
  fill_slots();
  if (num_busy_ == 0) return;
  for (Chunk& slot : slots_) {
    if (!slot.flight_) continue;
    int complete = 0;
    MPI_CHECK(MPI_Testall(static_cast<int>(slot.requests_.size()), slot.requests_.data(), &complete,
                          MPI_STATUSES_IGNORE));
    if (complete == 0) continue;
    slot.requests_.clear();
    ++slot.round;
    if (!advance(slot)) finish(slot);
  }
  fill_slots();
}

void MpiEngine::wait(const Flight& flight) {
  for (int spins = 0; !flight.done(); ++spins) {
    progress();
    if (spins > kSpins) sched_yield();
  }
}

}  // namespace shardmark

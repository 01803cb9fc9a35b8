// Chunks in slots, the tags of their messages, and who makes progress.
#include "comm/pt2pt/engine/engine.h"

#include <algorithm>
#include <new>

#include "base/backoff.h"
#include "base/error.h"

namespace shardmark {
namespace {

// Enough slots to keep a peer busy while this rank reduces. Measured: comm/README.md.
constexpr int kNumSlots = 4;
// For one chunk. A tree over 2^30 ranks, up and down, needs fewer.
constexpr int kMaxRounds = 64;
constexpr int kNumSequences = 32768 / kMaxRounds;  // every MPI has at least 32768 tags

}  // namespace

void Chunk::send(const void* data, int64_t bytes, int peer) {
  if (bytes == 0) return;
  messages_->send(data, bytes, peer, tag_ + round);
  ++num_posted_;
}

void Chunk::receive(void* data, int64_t bytes, int peer) {
  if (bytes == 0) return;
  messages_->receive(data, bytes, peer, tag_ + round);
  ++num_posted_;
}

char* Chunk::scratch(int64_t bytes) {
  // Memory for long messages is a number of whole huge pages, also where half of one would do, because
  // messages are copied into these faster: comm/README.md.
  constexpr int64_t kLong = 64 << 10, kHugePage = 2 << 20;
  if (bytes > kLong) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (bytes > scratch_bytes_) {
    scratch_bytes_ = 0;
    scratch_.reset();
    scratch_ = wire_->memory(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

Engine::Engine(Wire& wire, bool own_thread, Siblings siblings) : siblings_(std::move(siblings)) {
  siblings_->push_back(this);
  for (int i = 0; i < kNumSlots; ++i) slots_.emplace_back(wire);
  if (own_thread) thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

Engine::~Engine() {
  std::erase(*siblings_, this);
  thread_ = {};  // stops and joins
  // Slots whose messages cannot be cancelled are leaked on purpose, because MPI may still write to their
  // memory.
  for (Chunk& slot : slots_) {
    if (slot.job_ && !slot.messages_->cancel()) static_cast<void>(new (std::nothrow) Chunk(std::move(slot)));
  }
}

std::shared_ptr<const RunningJob> Engine::start(Job job) {
  auto started = std::make_shared<RunningJob>(std::move(job));
  if (started->done()) return started;  // has no chunks
  if (has_thread()) {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(started);
    arrival_.notify_one();
  } else {
    waiting_.push_back(started);
  }
  progress();
  return started;
}

// The communication thread. It sleeps while nothing is in flight.
void Engine::serve(const std::stop_token& stop) {
  try {
    Backoff backoff;
    for (; !stop.stop_requested(); backoff.pause()) {
      {
        std::unique_lock lock(mutex_);
        const auto has_work = [&] { return num_busy_ > 0 || !waiting_.empty() || !arrived_.empty(); };
        if (!arrival_.wait(lock, stop, has_work)) return;
        if (!arrived_.empty()) Backoff::progress_made();
        waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
        arrived_.clear();
      }
      move();
    }
  } catch (...) {
    keep_failure();
  }
}

void Engine::trim() {
  for (Chunk& slot : slots_) {
    slot.scratch_bytes_ = 0;
    slot.scratch_.reset();
  }
}

void Engine::keep_failure() {
  failure_ = std::current_exception();
  failed_ = true;
}

void Engine::throw_failure() {
  if (failed_) std::rethrow_exception(failure_);
}

// Goes through the rounds of a chunk until one has posted messages, and returns true; the chunk then waits
// for them. Returns false when the chunk is complete.
bool Engine::advance(Chunk& slot) {
  slot.num_posted_ = 0;
  while (slot.job_->advance(slot)) {
    ENSURE(slot.round < kMaxRounds, "a chunk has too many rounds");
    if (slot.num_posted_ > 0) return true;
    // Nothing to wait for: there is one rank, or this rank has no part in this round.
    ++slot.round;
  }
  return false;
}

// Two chunks in flight never share a tag; otherwise a message of the later one could be matched with the
// earlier one.
bool Engine::tag_is_free() const {
  return std::all_of(slots_.begin(), slots_.end(), [this](const Chunk& slot) {
    return !slot.job_ || next_sequence_ - slot.sequence_ < kNumSequences;
  });
}

// A chunk of a job with a lag waits until chunk i - lag has left its slot. Chunks start in order, so that
// one which is in no slot any more is done.
bool Engine::may_start(const RunningJob& job) const {
  const int64_t before = job.num_started - job.lag;
  if (job.lag == 0 || before < 0) return tag_is_free();
  return tag_is_free() && std::none_of(slots_.begin(), slots_.end(), [&](const Chunk& slot) {
           return slot.job_.get() == &job && slot.index == before;
         });
}

// Chunks start in the order of the jobs, and each takes the next sequence number. Both are the same on
// every rank, so that the tag of a chunk is the same on both ends of its messages. A chunk without any
// message is complete at once, and the slot takes the next one.
void Engine::fill_slots() {
  for (Chunk& slot : slots_) {
    while (!slot.job_ && !waiting_.empty() && may_start(*waiting_.front())) {
      slot.job_ = waiting_.front();
      slot.index = slot.job_->num_started++;
      slot.round = 0;
      slot.sequence_ = next_sequence_++;
      slot.tag_ = static_cast<int>(slot.sequence_ % kNumSequences) * kMaxRounds;
      if (slot.job_->num_started == slot.job_->num_chunks) waiting_.pop_front();
      ++num_busy_;
      if (advance(slot)) break;
      finish(slot);
    }
  }
}

void Engine::finish(Chunk& slot) {
  const auto job = std::move(slot.job_);
  job->num_done.fetch_add(1, std::memory_order_release);
  --num_busy_;
}

void Engine::progress() {
  throw_failure();
  if (has_thread()) return;
  try {
    move();
  } catch (...) {
    keep_failure();
    throw;
  }
}

// Slots become free here, so that they are filled again at the end: a peer may be waiting for the first
// message of the next chunk.
void Engine::move() {
  fill_slots();
  if (num_busy_ == 0) return;
  for (Chunk& slot : slots_) {
    if (!slot.job_ || !slot.messages_->complete()) continue;
    Backoff::progress_made();
    ++slot.round;
    if (!advance(slot)) finish(slot);
  }
  fill_slots();
}

// Note [Siblings] says why the other engines make progress, too.
void Engine::wait(const RunningJob& job) {
  for (Backoff backoff; !job.done(); backoff.pause()) {
    for (Engine* engine : *siblings_) engine->progress();
  }
}

}  // namespace shardmark

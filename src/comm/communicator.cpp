// The public interface of every transport: counts traffic and exposed time.
#include "comm/communicator.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "comm/in_step.h"
#include "comm/watch/heartbeat.h"
#include "device/timeline.h"

namespace shardmark {
namespace {

// Where start and poll are marked: on a GPU they only enqueue.
Timeline* cpu_only(Timeline* timeline) {
  return timeline != nullptr && timeline->device().is_cpu() ? timeline : nullptr;
}

void check(const Call& call, int rank, int size) {
  using specs::Holds;
  const specs::CollectiveRow& row = specs::collective(call.what);
  const bool sends = call.uses_in(rank), receives = call.uses_out(rank);
  ENSURE((!sends || call.in.is_contiguous()) && (!receives || call.out.is_contiguous()),
         row.name + " needs contiguous memory");
  ENSURE(!row.reduces || call.op != ReduceOp::average || call.in.is_floating_point(),
         "an average of integers is not exact: use sum");
  if (!sends || !receives) return;
  const int64_t in = call.in.numel() * (row.in == Holds::shard ? size : 1);
  const int64_t out = call.out.numel() * (row.out == Holds::shard ? size : 1);
  ENSURE(in == out || row.in == Holds::pair, row.name + ": its send and receive buffers do not match");
  ENSURE(row.in != Holds::chunk_per_rank || in % size == 0, row.name + ": a side must hold size() x chunk");
  ENSURE(row.in_place || in == 0 || call.out.data_ptr() != call.in.data_ptr(),
         row.name + " does not work in place");
}

}  // namespace

bool Call::uses_in(int rank) const {
  return specs::collective(what).root != specs::CollectiveRow::Root::sends || rank == root;
}

bool Call::uses_out(int rank) const {
  return specs::collective(what).root != specs::CollectiveRow::Root::receives || rank == root;
}

double Call::payload_bytes(int rank, int size) const {
  const specs::CollectiveRow& row = specs::collective(what);
  const auto whole = [&](const at::Tensor& side, specs::Holds holds) {
    return static_cast<double>(side.nbytes()) * (holds == specs::Holds::shard ? size : 1);
  };
  return std::max(uses_in(rank) ? whole(in, row.in) : 0, uses_out(rank) ? whole(out, row.out) : 0);
}

Work& Work::operator=(Work&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(operation_, other.operation_);
  std::swap(number_, other.number_);
  return *this;
}

Work::~Work() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_warning(std::string("an operation that nobody waited for failed: ") + error.what());
  }
}

bool Work::poll() {
  if (!operation_) return true;
  const Timeline::Exposed exposed(cpu_only(comm_->accounts_->timeline));
  const auto where = [this] { return comm_->where("an operation", number_); };
  return in_step(comm_->size(), where, [this] { return operation_->poll(); });
}

void Work::wait() {
  if (!operation_) return;
  const auto operation = std::move(operation_);  // released whether it fails or not
  const Timeline::Exposed exposed(comm_->accounts_->timeline);
  Heartbeat* const notes = operation->ending() ? nullptr : comm_->heartbeat_;  // else: note_completed
  if (notes != nullptr) notes->waits_for(number_);
  const auto where = [this] { return comm_->where("an operation", number_); };
  in_step(comm_->size(), where, [&] { operation->wait(); });
  if (notes != nullptr) notes->completed(number_);
}

Work Communicator::start(const Call& call) {
  check(call, rank(), size());
  const Timeline::Exposed exposed(cpu_only(accounts_->timeline));
  const specs::CollectiveRow& row = specs::collective(call.what);
  const double payload_bytes = call.payload_bytes(rank(), size());
  Traffic& traffic = accounts_->traffic;
  ++traffic.num_operations;
  ++traffic.operations[static_cast<size_t>(call.what)];
  traffic.payload_bytes += payload_bytes;
  traffic.ring_bytes += payload_bytes * specs::ring_factor(call.what, size());
  const int64_t number = heartbeat_ == nullptr ? 0 : heartbeat_->started(row.name.c_str(), payload_bytes);
  auto operation = in_step(
      size(), [&] { return where(row.name, number); }, [&] { return do_start(call); });
  if (heartbeat_ != nullptr) {
    if (!operation)
      heartbeat_->completed(number);
    else if (auto ending = operation->ending())
      note_start(number, std::move(ending));
  }
  return {this, std::move(operation), number};
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  auto part = in_step(
      size(), [this] { return where("a split"); }, [&] { return do_split(color, key); });
  if (part) part->set_heartbeat(heartbeat_);
  return part;
}

void Communicator::progress() {
  const Timeline::Exposed exposed(cpu_only(accounts_->timeline));
  in_step(
      size(), [this] { return where("what is in flight"); }, [this] { do_progress(); });
  note_completed();
}

void Communicator::look() {
  progress();
  if (heartbeat_ != nullptr && !on_device_.empty()) heartbeat_->waits_for(on_device_.front().first);
}

void Communicator::note_start(int64_t number, std::shared_ptr<Ending> ending) {
  if (on_device_.empty() || on_device_.back().ending != ending)
    on_device_.push_back({number, number, std::move(ending)});
  else
    on_device_.back().last = number;
}

void Communicator::note_completed() {
  while (!on_device_.empty() && on_device_.front().ending->is_reached()) {
    if (heartbeat_ != nullptr) heartbeat_->completed(on_device_.front().last);
    on_device_.pop_front();
  }
}

std::string Communicator::where(const std::string& call, int64_t number) const {
  if (heartbeat_ == nullptr) return call;
  return (number > 0 ? heartbeat_->operation_text(number) : call) + ", " + heartbeat_->place();
}

}  // namespace shardmark

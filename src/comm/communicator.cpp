// The public interface of every transport. It checks calls, counts traffic, marks exposed time and keeps the
// heartbeat, then calls the transport.
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

int64_t peer_of(const Call& call) {
  return call.what != Collective::send_recv ? -1 : call.from != Call::kNobody ? call.from : call.to;
}

// start() and poll() are marked as exposed on the CPU only; on a GPU they merely enqueue.
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
  if (call.parts != nullptr) {
    ENSURE(call.in.numel() == call.parts->sent_by(rank) && call.out.numel() == call.parts->received_by(rank),
           row.name + ": its sides must hold the parts that are sent and received");
    return;
  }
  const int64_t in = call.in.numel() * (row.in == Holds::shard ? size : 1);
  const int64_t out = call.out.numel() * (row.out == Holds::shard ? size : 1);
  ENSURE(in == out || row.in == Holds::pair, row.name + ": its send and receive buffers do not match");
  ENSURE(row.in != Holds::chunk_per_rank || in % size == 0, row.name + ": a side must hold size() x chunk");
  ENSURE(row.in_place || in == 0 || call.out.data_ptr() != call.in.data_ptr(),
         row.name + " does not work in place");
}

}  // namespace

bool Call::uses_in(int rank) const {
  if (what == Collective::send_recv) return to != kNobody;
  return specs::collective(what).root != specs::CollectiveRow::Root::sends || rank == root;
}

bool Call::uses_out(int rank) const {
  if (what == Collective::send_recv) return from != kNobody;
  return specs::collective(what).root != specs::CollectiveRow::Root::receives || rank == root;
}

int64_t Call::part(int sender, int receiver, int size) const {
  return parts == nullptr ? in.numel() / size : parts->between(sender, receiver);
}

double Call::ring_bytes(int rank, int size) const {
  if (parts == nullptr) return payload_bytes(rank, size) * specs::ring_factor(what, size);
  return static_cast<double>((parts->sent_by(rank) - parts->between(rank, rank)) * in.element_size());
}

double Call::bus_bytes(int rank, int size) const {
  if (parts != nullptr) return static_cast<double>(parts->busiest_with_others() * in.element_size());
  return payload_bytes(rank, size) * specs::collective(what).busbw.of(size);
}

double Call::payload_bytes(int rank, int size) const {
  if (parts != nullptr) return static_cast<double>(parts->busiest() * in.element_size());
  const specs::CollectiveRow& row = specs::collective(what);
  const auto whole = [&](const at::Tensor& side, specs::Holds holds) {
    return static_cast<double>(side.nbytes()) * (holds == specs::Holds::shard ? size : 1);
  };
  return std::max(uses_in(rank) ? whole(in, row.in) : 0, uses_out(rank) ? whole(out, row.out) : 0);
}

// Swaps, so that the operation that this handle held is waited for when `other` is destroyed.
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
  const Timeline::Exposed exposed(cpu_only(comm_->accounts_->timeline), comm_->exposed_kind_);
  const auto where = [this] { return comm_->where("an operation", number_); };
  return in_step(comm_->size(), where, [this] { return operation_->poll(); });
}

// On the CPU the operation is complete when its wait() returns. On a GPU only the stream waits then: the
// operation has an ending, and note_completed() tells the heartbeat once the device has reached it.
void Work::wait() {
  if (!operation_) return;
  const auto operation = std::move(operation_);  // released even if it fails
  const Timeline::Exposed exposed(comm_->accounts_->timeline, comm_->exposed_kind_);
  Heartbeat* const notes = operation->ending() ? nullptr : comm_->heartbeat_;  // else noted in note_completed
  if (notes != nullptr) notes->waits_for(number_);
  const auto where = [this] { return comm_->where("an operation", number_); };
  in_step(comm_->size(), where, [&] { operation->wait(); });
  if (notes != nullptr) notes->completed(number_);
}

Work Communicator::start(const Call& call) { return begin(call, &Communicator::do_start); }

void Communicator::run(const Call& call) { begin(call, &Communicator::do_run).wait(); }

// The heartbeat gets its note before the transport starts the operation, so that a rank that hangs inside
// the start is seen in it. A message counts its ring bytes on the sender alone.
Work Communicator::begin(const Call& call, std::unique_ptr<Operation> (Communicator::*start)(const Call&)) {
  check(call, rank(), size());
  const Timeline::Exposed exposed(cpu_only(accounts_->timeline), exposed_kind_);
  const specs::CollectiveRow& row = specs::collective(call.what);
  const double payload_bytes = call.payload_bytes(rank(), size());
  Traffic& traffic = accounts_->traffic;
  ++traffic.num_operations;
  ++traffic.operations[static_cast<size_t>(call.what)];
  traffic.payload_bytes += payload_bytes;
  if (call.what != Collective::send_recv || call.uses_in(rank()))
    traffic.ring_bytes += call.ring_bytes(rank(), size());
  const int64_t number =
      heartbeat_ == nullptr ? 0 : heartbeat_->started(row.name.c_str(), payload_bytes, peer_of(call));
  auto operation = in_step(
      size(), [&] { return where(row.name, number); }, [&] { return (this->*start)(call); });
  if (heartbeat_ != nullptr) {
    if (!operation)
      heartbeat_->completed(number);
    else if (auto ending = operation->ending())
      note_start(number, std::move(ending));
  }
  return {this, std::move(operation), number};
}

std::unique_ptr<Communicator> Communicator::split(int color, int key, SplitUse use) {
  auto part = in_step(
      size(), [this] { return where("a split"); }, [&] { return do_split(color, key, use); });
  if (part) part->set_heartbeat(heartbeat_);
  return part;
}

void Communicator::progress() {
  const Timeline::Exposed exposed(cpu_only(accounts_->timeline), exposed_kind_);
  in_step(
      size(), [this] { return where("what is in flight"); }, [this] { do_progress(); });
  note_completed();
}

void Communicator::look() {
  progress();
  if (heartbeat_ != nullptr && !on_device_.empty()) heartbeat_->waits_for(on_device_.front().first);
}

// Operations that were launched as one group share one ending, and one entry.
void Communicator::note_start(int64_t number, std::shared_ptr<Ending> ending) {
  if (on_device_.empty() || on_device_.back().ending != ending)
    on_device_.push_back({number, number, std::move(ending)});
  else
    on_device_.back().last = number;
}

// Looks at the operations in the order of their starts, and stops at the first one that is not complete.
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

// The public face of every transport: counts traffic and exposed time.
#include "comm/communicator.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "device/phases.h"
#include "laws/vocabulary.h"
#include "watch/flight.h"

namespace shardmark {
namespace {

// The clock that start and poll are counted on: on a GPU they only enqueue.
PhaseClock* cpu_only(PhaseClock* clock) { return clock != nullptr && !clock->on_gpu() ? clock : nullptr; }

double bytes_of(const at::Tensor& tensor) { return static_cast<double>(tensor.nbytes()); }

void check_contiguous(const at::Tensor& tensor) {
  ENSURE(tensor.is_contiguous(), "a collective needs contiguous memory");
}

void check_average(const at::Tensor& tensor, ReduceOp op) {
  ENSURE(op != ReduceOp::average || tensor.is_floating_point(),
         "an average of integers is not exact: use sum");
}

}  // namespace

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
  const PhaseClock::Exposed exposed(cpu_only(comm_->accounts_->clock));
  return operation_->poll();
}

void Work::wait() {
  if (!operation_) return;
  const auto operation = std::move(operation_);  // released whether it fails or not
  const PhaseClock::Exposed exposed(comm_->accounts_->clock);
  if (comm_->flight_ != nullptr) comm_->flight_->waits_for(number_);
  operation->wait();
  if (comm_->flight_ != nullptr) comm_->flight_->completed(number_);
}

template <class Start>
Work Communicator::start(const char* name, double payload_bytes, Start&& start) {
  const PhaseClock::Exposed exposed(cpu_only(accounts_->clock));
  Traffic& traffic = accounts_->traffic;
  ++traffic.num_operations;
  ++traffic.operations[name];
  traffic.payload_bytes += payload_bytes;
  traffic.law_bytes += payload_bytes * laws::ring_factor(name, size());
  const int64_t number = flight_ == nullptr ? 0 : flight_->started(name, payload_bytes);
  auto operation = start();
  if (!operation && flight_ != nullptr) flight_->completed(number);
  return {this, std::move(operation), number};
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  auto part = do_split(color, key);
  if (part) part->set_flight(flight_);
  return part;
}

Work Communicator::all_reduce(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  check_contiguous(out);
  check_contiguous(in);
  check_average(in, op);
  ENSURE(out.numel() == in.numel(), "all_reduce: out must hold as much as in");
  return start("all_reduce", bytes_of(in), [&] { return do_all_reduce(out, in, op); });
}

Work Communicator::reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  check_contiguous(out);
  check_contiguous(in);
  check_average(in, op);
  ENSURE(in.numel() == out.numel() * size(), "reduce_scatter: in must hold size() x out");
  return start("reduce_scatter", bytes_of(in), [&] { return do_reduce_scatter(out, in, op); });
}

Work Communicator::all_gather(const at::Tensor& out, const at::Tensor& in) {
  check_contiguous(out);
  check_contiguous(in);
  ENSURE(out.numel() == in.numel() * size(), "all_gather: out must hold size() x in");
  return start("all_gather", bytes_of(out), [&] { return do_all_gather(out, in); });
}

Work Communicator::broadcast(const at::Tensor& out, const at::Tensor& in, int root) {
  check_contiguous(out);
  if (rank() == root) {
    check_contiguous(in);
    ENSURE(out.numel() == in.numel(), "broadcast: out must hold as much as in on the root");
  }
  return start("broadcast", bytes_of(out), [&] { return do_broadcast(out, in, root); });
}

Work Communicator::reduce(const at::Tensor& out, const at::Tensor& in, int root, ReduceOp op) {
  check_contiguous(in);
  check_average(in, op);
  if (rank() == root) {
    check_contiguous(out);
    ENSURE(out.numel() == in.numel(), "reduce: out must hold as much as in on the root");
  }
  return start("reduce", bytes_of(in), [&] { return do_reduce(out, in, root, op); });
}

Work Communicator::all_to_all(const at::Tensor& out, const at::Tensor& in) {
  check_contiguous(out);
  check_contiguous(in);
  ENSURE(out.numel() == in.numel() && in.numel() % size() == 0,
         "all_to_all: both sides must hold size() x chunk");
  ENSURE(in.numel() == 0 || out.data_ptr() != in.data_ptr(), "all_to_all does not work in place");
  return start("all_to_all", bytes_of(in), [&] { return do_all_to_all(out, in); });
}

// The payload of a gather or scatter is the root's side, on every rank: all ranks then count the same.
Work Communicator::gather(const at::Tensor& out, const at::Tensor& in, int root) {
  check_contiguous(in);
  if (rank() == root) {
    check_contiguous(out);
    ENSURE(out.numel() == in.numel() * size(), "gather: out must hold size() x in on the root");
  }
  return start("gather", bytes_of(in) * size(), [&] { return do_gather(out, in, root); });
}

Work Communicator::scatter(const at::Tensor& out, const at::Tensor& in, int root) {
  check_contiguous(out);
  if (rank() == root) {
    check_contiguous(in);
    ENSURE(in.numel() == out.numel() * size(), "scatter: in must hold size() x out on the root");
  }
  return start("scatter", bytes_of(out) * size(), [&] { return do_scatter(out, in, root); });
}

Work Communicator::send_recv(const at::Tensor& out, int from, const at::Tensor& in, int to) {
  check_contiguous(out);
  check_contiguous(in);
  return start("send_recv", std::max(bytes_of(in), bytes_of(out)),
               [&] { return do_send_recv(out, from, in, to); });
}

void Communicator::progress() {
  const PhaseClock::Exposed exposed(cpu_only(accounts_->clock));
  do_progress();
}

}  // namespace shardmark

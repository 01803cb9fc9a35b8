// How ranks exchange tensors. A Communicator is pure virtual below its public face; every transport
// implements all of it, and one rank is a valid world. Not thread-safe: one thread calls, in the same order
// on every rank.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/host_group.h"
#include "device/phases.h"

namespace shardmark {

enum class ReduceOp { sum, average, min, max };

// An operation in flight. Owns its tensors until waited for.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual bool poll() = 0;  // makes progress; true when complete (in device order on a GPU: when enqueued)
  virtual void wait() = 0;  // orders the CURRENT stream after the operation; on the CPU waits for it
};

class Communicator;
class Flight;

// Move-only. wait() must be called; the destructor waits if it was not. An empty Work is complete.
class Work {
 public:
  Work() = default;
  // number: what the communicator's flight calls it.
  Work(Communicator* comm, std::unique_ptr<Operation> operation, int64_t number = 0)
      : comm_(comm), operation_(std::move(operation)), number_(number) {}
  Work(Work&&) = default;
  Work& operator=(Work&& other) noexcept;
  ~Work();
  bool poll();
  void wait();

 private:
  Communicator* comm_ = nullptr;
  std::unique_ptr<Operation> operation_;
  int64_t number_ = 0;
};

// Payload as nccl-tests counts it (the larger of a rank's two sides) and law bytes = payload x ring factor.
struct Traffic {
  int64_t num_operations = 0;
  double payload_bytes = 0;
  double law_bytes = 0;
  std::map<std::string, int64_t> operations;  // by name
};

// The public functions count traffic and time (PhaseClock::Exposed), then call the transport's do_*. Tensors
// are contiguous.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual at::Device device() const = 0;
  virtual std::string transport() const = 0;

  // [numel], zeroed; memory that the transport reaches without a copy. Counted by the meter under its current
  // use.
  virtual at::Tensor allocate(int64_t numel, at::ScalarType dtype) = 0;

  // Where `out` and `in` may be the same tensor, the short form with one tensor does it in place. Roots are
  // ranks; a side that a rank does not use may be undefined. A reduction of integers has no average.
  Work all_reduce(const at::Tensor& out, const at::Tensor& in, ReduceOp op);
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) { return all_reduce(tensor, tensor, op); }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                      ReduceOp op);  // in: [size * out]; out may be in's own slice
  Work all_gather(const at::Tensor& out,
                  const at::Tensor& in);  // out: [size * in]; in may be out's own slice
  Work broadcast(const at::Tensor& out, const at::Tensor& in, int root);  // in used on root only
  Work broadcast(const at::Tensor& tensor, int root) { return broadcast(tensor, tensor, root); }
  Work reduce(const at::Tensor& out, const at::Tensor& in, int root,
              ReduceOp op);  // out used (and changed) on root only
  Work reduce(const at::Tensor& tensor, int root, ReduceOp op) { return reduce(tensor, tensor, root, op); }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in);  // both [size * chunk]; out != in
  Work gather(const at::Tensor& out, const at::Tensor& in,
              int root);  // out: [size * in], used on root only; in may be its slice
  Work scatter(const at::Tensor& out, const at::Tensor& in,
               int root);  // in: [size * out], used on root only; out may be its slice
  Work send_recv(const at::Tensor& out, int from, const at::Tensor& in,
                 int to);  // sends `in` to `to`, receives `out` from `from`

  // Several operations of one block in one launch (ncclGroupStart/End); order them the same on every rank.
  virtual void group_begin() {}
  virtual void group_end() {}

  // While it lives, operations run in the order of this thread's work on the device, on one queue with it: as
  // they are timed alone, without the events that let them overlap with computing. Empty where there is no
  // such queue.
  virtual std::shared_ptr<void> in_order() { return nullptr; }

  void progress();  // moves what is in flight; call after each block

  std::unique_ptr<Communicator> split(int color, int key);  // color < 0: takes no part, gets nullptr
  virtual void abort() noexcept = 0;
  // Gives back memory that is kept for later operations; nothing may be in flight. Between points, so that
  // the peak of one does not hold what another needed.
  virtual void trim() {}

  const Traffic& traffic() const { return accounts_->traffic; }
  void reset_traffic() { accounts_->traffic = {}; }
  // From now on traffic and exposed time of this communicator count as the other's: for parts of one
  // operation that run on several communicators.
  void count_in(const Communicator& other) { accounts_ = other.accounts_; }
  // Law bytes that this rank has sent to other nodes in stages of their own, from the start; a NaN where the
  // transport has no such stages.
  virtual double bytes_between_nodes() const { return __builtin_nan(""); }

  // Exposed communication goes to Phase::exposed of this clock (device/phases.h): on the CPU all time that
  // start, poll and wait take; on a GPU the time that the compute stream waits in Work::wait(). nullptr: not
  // timed. The clock must outlive its use here.
  void set_phase_clock(PhaseClock* clock) { accounts_->clock = clock; }

  // From now on operations are noted there as they start and complete (watch/flight.h), also those of
  // communicators split off this one later. nullptr: nowhere. The flight must outlive its use here.
  void set_flight(Flight* flight) { flight_ = flight; }

 protected:
  virtual std::unique_ptr<Communicator> do_split(int color, int key) = 0;
  virtual std::unique_ptr<Operation> do_all_reduce(const at::Tensor& out, const at::Tensor& in,
                                                   ReduceOp op) = 0;
  virtual std::unique_ptr<Operation> do_reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                                       ReduceOp op) = 0;
  virtual std::unique_ptr<Operation> do_all_gather(const at::Tensor& out, const at::Tensor& in) = 0;
  virtual std::unique_ptr<Operation> do_broadcast(const at::Tensor& out, const at::Tensor& in, int root) = 0;
  virtual std::unique_ptr<Operation> do_reduce(const at::Tensor& out, const at::Tensor& in, int root,
                                               ReduceOp op) = 0;
  virtual std::unique_ptr<Operation> do_all_to_all(const at::Tensor& out, const at::Tensor& in) = 0;
  virtual std::unique_ptr<Operation> do_gather(const at::Tensor& out, const at::Tensor& in, int root) = 0;
  virtual std::unique_ptr<Operation> do_scatter(const at::Tensor& out, const at::Tensor& in, int root) = 0;
  virtual std::unique_ptr<Operation> do_send_recv(const at::Tensor& out, int from, const at::Tensor& in,
                                                  int to) = 0;
  virtual void do_progress() = 0;

 private:
  friend class Work;
  template <class Start>
  Work start(const char* name, double payload_bytes, Start&& start);
  struct Accounts {
    Traffic traffic;
    PhaseClock* clock = nullptr;
  };
  std::shared_ptr<Accounts> accounts_ = std::make_shared<Accounts>();
  Flight* flight_ = nullptr;
};

// Who moves what is in flight over host memory: the computing thread, whenever it starts, polls or waits; or
// a thread of the transport's own, which costs a core. NCCL moves by itself.
enum class MovedBy { caller, thread };

// A transport of laws' table, "mpi", "nccl" or "hierarchical(form=leader)", over the ranks of `group`;
// collective over them. UsageError: unknown transport, NCCL without a GPU, more ranks than GPUs on a node,
// nodes that a form of hierarchical cannot take.
std::unique_ptr<Communicator> make_communicator(const std::string& transport, const HostGroup& group,
                                                at::Device device, MovedBy moved_by = MovedBy::caller);

// Between its making and end() the operations of a communicator share one launch. An exception closes the
// launch as well, or nothing that NCCL is asked for afterwards would ever begin.
class OneLaunch {
 public:
  explicit OneLaunch(Communicator& comm) : comm_(&comm) { comm.group_begin(); }
  ~OneLaunch() {
    if (comm_ == nullptr) return;
    try {
      comm_->group_end();
    } catch (...) {  // the exception that is on its way tells more
    }
  }
  void end() { std::exchange(comm_, nullptr)->group_end(); }
  OneLaunch(const OneLaunch&) = delete;
  OneLaunch& operator=(const OneLaunch&) = delete;

 private:
  Communicator* comm_;
};

}  // namespace shardmark

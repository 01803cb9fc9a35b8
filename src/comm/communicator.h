// How ranks exchange tensors. `Communicator` is the interface that every transport implements in full; a
// group of one rank is valid. It is not thread-safe: one thread calls it, in the same order on every rank.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "comm/host_group.h"
#include "device/timeline.h"
#include "specs/collectives.h"
#include "specs/parts.h"

namespace shardmark {

using specs::Collective;

enum class ReduceOp { sum, average, min, max };

// One operation as a rank calls it. Tensors are contiguous; a side that the rank does not use may be
// undefined. An operation is in place if `out` and `in` share memory: either they are the same tensor, or one
// is the rank's own shard of the other.
struct Call {
  Collective what = Collective::all_reduce;
  at::Tensor out, in;
  ReduceOp op = ReduceOp::sum;  // of reductions; integers have no average
  int root = 0;                 // of broadcast, reduce, gather, scatter
  // send_recv receives `out` from rank `from` and sends `in` to rank `to`. kNobody leaves that direction out,
  // for a one-way message.
  static constexpr int kNobody = -1;
  int from = 0, to = 0;
  // The part sizes of all_to_all_v; on both sides the parts follow each other in rank order. nullptr: equal
  // parts.
  std::shared_ptr<const specs::Parts> parts = nullptr;

  bool uses_in(int rank) const;
  bool uses_out(int rank) const;
  // The message size as nccl-tests counts it: the larger of a rank's two sides, and for a rooted operation
  // the root's. It is the same on every rank, except for send_recv.
  double payload_bytes(int rank, int size) const;
  // Bytes over the busiest link: payload x busbw factor. With parts of different sizes, what the busiest rank
  // exchanges with others. The same on every rank.
  double bus_bytes(int rank, int size) const;
  // Payload x ring factor. With parts of different sizes, what this rank sends to others.
  double ring_bytes(int rank, int size) const;
  // Elements that go from `sender` to `receiver`, for all_to_all and all_to_all_v.
  int64_t part(int sender, int receiver, int size) const;
};

// The completion of an operation on a device that runs behind its host (a CUDA event).
class Ending {
 public:
  virtual ~Ending() = default;
  virtual bool is_reached() = 0;  // does not wait
};

// An operation in flight. It holds its tensors until it has been waited for.
class Operation {
 public:
  virtual ~Operation() = default;
  // Makes progress and returns true when the operation is complete; on a GPU, when it is enqueued.
  virtual bool poll() = 0;
  // On a GPU, makes the CURRENT stream wait for the operation; on the CPU, blocks until it is complete.
  virtual void wait() = 0;
  // The completion on a GPU; nullptr if the operation is complete when wait() returns.
  virtual std::shared_ptr<Ending> ending() const { return nullptr; }
};

class Communicator;
class Heartbeat;

// A handle of an operation in flight. It is move-only, and an empty Work is complete. Call wait(); if nobody
// did, the destructor does.
class Work {
 public:
  Work() = default;
  // `number` is the operation's number in the communicator's heartbeat.
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

// What a communicator has moved. Ring bytes are payload x ring factor.
struct Traffic {
  int64_t num_operations = 0;
  double payload_bytes = 0;
  double ring_bytes = 0;
  std::array<int64_t, specs::kNumCollectives> operations = {};  // by Collective
};

// What a communicator that is split off is used for. `messages` means send_recv between neighbouring pipeline
// stages while the device computes.
enum class SplitUse { anything, messages };

// The public functions count traffic and exposed time (Timeline::Exposed), then call the transport's do_*
// functions. If one of them throws on one rank of several, the job ends there: Note [One rank that fails] in
// comm/in_step.h.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual at::Device device() const = 0;
  virtual std::string transport() const = 0;

  // Returns a zeroed tensor of shape [numel] in memory that the transport can access without a staging copy.
  // The meter counts it under its current use.
  virtual at::Tensor allocate(int64_t numel, at::ScalarType dtype) = 0;

  // Starts any operation; the functions below are shorthands. Throws ContractError if the tensors do not fit
  // the operation.
  Work start(const Call& call);
  // Starts an operation and waits for it. With transport mpi this is the blocking call of the library, which
  // it may serve in another way than a non-blocking one; so all ranks must use run() for this operation.
  void run(const Call& call);

  Work all_reduce(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
    return start({Collective::all_reduce, out, in, op});
  }
  // `in` has shape [size * out.numel()].
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
    return start({Collective::reduce_scatter, out, in, op});
  }
  // `out` has shape [size * in.numel()].
  Work all_gather(const at::Tensor& out, const at::Tensor& in) {
    return start({Collective::all_gather, out, in});
  }
  // `in` is used on the root only.
  Work broadcast(const at::Tensor& out, const at::Tensor& in, int root) {
    return start({Collective::broadcast, out, in, ReduceOp::sum, root});
  }
  // `out` is used on the root only.
  Work reduce(const at::Tensor& out, const at::Tensor& in, int root, ReduceOp op) {
    return start({Collective::reduce, out, in, op, root});
  }
  // Both have shape [size * chunk]; there is no in-place form.
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) {
    return start({Collective::all_to_all, out, in});
  }
  // `out` has shape [size * in.numel()] and is used on the root only.
  Work gather(const at::Tensor& out, const at::Tensor& in, int root) {
    return start({Collective::gather, out, in, ReduceOp::sum, root});
  }
  // `in` has shape [size * out.numel()] and is used on the root only.
  Work scatter(const at::Tensor& out, const at::Tensor& in, int root) {
    return start({Collective::scatter, out, in, ReduceOp::sum, root});
  }
  Work send_recv(const at::Tensor& out, int from, const at::Tensor& in, int to) {
    return start({Collective::send_recv, out, in, ReduceOp::sum, 0, from, to});
  }
  // The in-place forms.
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) { return all_reduce(tensor, tensor, op); }
  Work broadcast(const at::Tensor& tensor, int root) { return broadcast(tensor, tensor, root); }
  Work reduce(const at::Tensor& tensor, int root, ReduceOp op) { return reduce(tensor, tensor, root, op); }

  // The seconds that the library itself expects one operation to take, without starting it. NaN if it does
  // not say. All ranks call it for the same operation.
  virtual double estimate_s(const Call& /*call*/) { return __builtin_nan(""); }

  // Operations between begin and end share one launch (ncclGroupStart/End). Every rank must start them in the
  // same order.
  virtual void group_begin() {}
  virtual void group_end() {}

  // While the returned object lives, operations share one stream with this thread's other work on the device.
  // They run in the order in which they are enqueued, without the events that let them overlap with
  // computing. That is how they are timed alone. Returns nullptr for transports without streams.
  virtual std::shared_ptr<void> in_order() { return nullptr; }

  // Makes progress on all operations in flight; call it after each block. On a GPU this is where failures of
  // other ranks are noticed and where completed operations are noted.
  void progress();
  // Like progress(), for use while the host waits for the device (device/device.h). It also notes in the
  // heartbeat that the rank waits for its oldest operation that is not complete.
  void look();

  // Splits like ncclCommSplit: ranks of the same color form a communicator, ordered by key. A rank with color
  // < 0 takes no part and gets nullptr.
  std::unique_ptr<Communicator> split(int color, int key, SplitUse use = SplitUse::anything);
  // Frees memory that is kept for later operations. Nothing may be in flight. It is called between
  // configurations, so that buffers of one do not count in the memory peak of the next.
  virtual void trim() {}
  // Returns why operations since the last call had to copy out of memory of allocate(), over all
  // communicators of this process. Empty if none had to.
  virtual std::string take_copied() { return ""; }

  const Traffic& traffic() const { return accounts_->traffic; }
  void reset_traffic() { accounts_->traffic = {}; }
  // From now on this communicator's traffic and exposed time count as those of `other`. Used when parts of
  // one operation run on several communicators.
  void count_in(const Communicator& other) { accounts_ = other.accounts_; }
  // Ring bytes that this rank has sent to other nodes, in stages that only go between nodes, since the
  // communicator was made. NaN if the transport has no such stages.
  virtual double bytes_between_nodes() const { return __builtin_nan(""); }

  // Marks exposed communication on this timeline. On the CPU that is all time spent in start, poll and wait;
  // on a GPU it is the time for which the compute stream waits in Work::wait(). nullptr turns the marks off.
  // The timeline must outlive this use.
  void set_timeline(Timeline* timeline) { accounts_->timeline = timeline; }
  // The kind under which this communicator's exposed time is marked from now on; it starts as 0.
  void expose_as(int64_t kind) { exposed_kind_ = kind; }

  // From now on operations are noted in this heartbeat when they start and complete (comm/watch/heartbeat.h).
  // Communicators that are split off later inherit it. On a GPU an operation is noted as complete once the
  // device is found to have completed it. nullptr turns the notes off. The heartbeat must outlive this use.
  void set_heartbeat(Heartbeat* heartbeat) { heartbeat_ = heartbeat; }

 protected:
  virtual std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) = 0;
  // Returns nullptr if the operation is already complete.
  virtual std::unique_ptr<Operation> do_start(const Call& call) = 0;
  // Like do_start, for an operation that is waited for at once.
  virtual std::unique_ptr<Operation> do_run(const Call& call) { return do_start(call); }
  virtual void do_progress() = 0;

 private:
  friend class Work;
  struct Accounts {
    Traffic traffic;
    Timeline* timeline = nullptr;
  };
  // Operations that complete together and that the heartbeat does not yet know to be complete.
  struct OnDevice {
    int64_t first, last;
    std::shared_ptr<Ending> ending;
  };
  Work begin(const Call& call, std::unique_ptr<Operation> (Communicator::*start)(const Call&));
  void note_start(int64_t number, std::shared_ptr<Ending> ending);
  void note_completed();
  // Describes where a failure happened. The number 0 means that no operation is involved.
  std::string where(const std::string& call, int64_t number = 0) const;
  std::shared_ptr<Accounts> accounts_ = std::make_shared<Accounts>();
  Heartbeat* heartbeat_ = nullptr;
  int64_t exposed_kind_ = 0;
  std::deque<OnDevice> on_device_;  // in the order in which they started
};

// Who makes progress on operations over host memory: the computing thread, whenever it starts, polls or
// waits, or a thread of the transport, which costs a core. NCCL needs neither.
enum class MovedBy { caller, thread };

// Makes a transport of the table in specs/specs.h, such as "pt2pt", "nccl" or "hierarchical(form=leader)",
// over the ranks of `group`. This is collective over those ranks. Throws RefusedByAllRanks if the transport
// is unknown, if NCCL lacks a GPU, if a node has more ranks than GPUs, or if a form of `hierarchical` cannot
// serve these nodes.
std::unique_ptr<Communicator> make_communicator(const std::string& transport, const HostGroup& group,
                                                at::Device device, MovedBy moved_by = MovedBy::caller);

// Groups operations of a communicator into one launch, from construction to end(). If an exception unwinds
// it, the destructor closes the group too; otherwise NCCL would never launch anything again.
class OneLaunch {
 public:
  explicit OneLaunch(Communicator& comm) : comm_(&comm) { comm.group_begin(); }
  ~OneLaunch() {
    if (comm_ == nullptr) return;
    try {
      comm_->group_end();
    } catch (...) {  // the exception that is unwinding tells more
    }
  }
  void end() { std::exchange(comm_, nullptr)->group_end(); }
  OneLaunch(const OneLaunch&) = delete;
  OneLaunch& operator=(const OneLaunch&) = delete;

 private:
  Communicator* comm_;
};

}  // namespace shardmark

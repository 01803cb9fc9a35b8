// How ranks exchange tensors. A Communicator is pure virtual below its public interface; every transport
// implements all of it, and one rank is a valid world. Not thread-safe: one thread calls, in the same order
// on every rank.
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

// One operation, as a rank calls it. Tensors are contiguous; a side that the rank does not use may be
// undefined. Where `out` and `in` share memory it works in place: they are the same tensor, or the one is the
// rank's own shard of the other.
struct Call {
  Collective what = Collective::all_reduce;
  at::Tensor out, in;
  ReduceOp op = ReduceOp::sum;  // of reductions; integers have no average
  int root = 0;                 // of broadcast, reduce, gather and scatter
  // Of send_recv: `out` comes from there, `in` goes there. kNobody: a message that goes one way alone.
  static constexpr int kNobody = -1;
  int from = 0, to = 0;
  // Of all_to_all_v: its parts, one after the other on both sides; nullptr: equal ones.
  std::shared_ptr<const specs::Parts> parts = nullptr;

  bool uses_in(int rank) const;
  bool uses_out(int rank) const;
  // As nccl-tests counts it: the larger of a rank's two sides, of a rooted operation the root's. The same on
  // every rank, but for send_recv.
  double payload_bytes(int rank, int size) const;
  // What goes over the busiest link: payload x busbw factor; of parts what the busiest rank exchanges with
  // others. The same on every rank.
  double bus_bytes(int rank, int size) const;
  double ring_bytes(int rank, int size) const;  // payload x ring factor; of parts: those of other ranks
  int64_t part(int sender, int receiver, int size) const;  // elements, of all_to_all and all_to_all_v
};

// The end of an operation on a device that its host runs ahead of.
class Ending {
 public:
  virtual ~Ending() = default;
  virtual bool is_reached() = 0;  // does not wait
};

// An operation in flight. Owns its tensors until waited for.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual bool poll() = 0;  // makes progress; true when complete (in device order on a GPU: when enqueued)
  virtual void wait() = 0;  // orders the CURRENT stream after the operation; on the CPU waits for it
  virtual std::shared_ptr<Ending> ending() const { return nullptr; }  // on a GPU; nullptr: it ends in wait()
};

class Communicator;
class Heartbeat;

// Move-only. wait() must be called; the destructor waits if it was not. An empty Work is complete.
class Work {
 public:
  Work() = default;
  // number: what the communicator's heartbeat calls it.
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

// Payloads, and ring bytes = payload x ring factor.
struct Traffic {
  int64_t num_operations = 0;
  double payload_bytes = 0;
  double ring_bytes = 0;
  std::array<int64_t, specs::kNumCollectives> operations = {};  // by Collective
};

// What a communicator that is split off is for. messages: send_recv between neighbours, beside computing.
enum class SplitUse { anything, messages };

// The public functions count traffic and time (Timeline::Exposed), then call the transport's do_*. Where
// one of these throws, on one of several ranks, the job ends there: comm/in_step.h, Note [One rank that
// fails].
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

  // What there is to start; ContractError: sides that do not fit the operation. The functions below spell it.
  Work start(const Call& call);

  Work all_reduce(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
    return start({Collective::all_reduce, out, in, op});
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {  // in: [size * out]
    return start({Collective::reduce_scatter, out, in, op});
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) {  // out: [size * in]
    return start({Collective::all_gather, out, in});
  }
  Work broadcast(const at::Tensor& out, const at::Tensor& in, int root) {  // in: used on the root only
    return start({Collective::broadcast, out, in, ReduceOp::sum, root});
  }
  Work reduce(const at::Tensor& out, const at::Tensor& in, int root, ReduceOp op) {  // out: on the root only
    return start({Collective::reduce, out, in, op, root});
  }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) {  // both [size * chunk], not in place
    return start({Collective::all_to_all, out, in});
  }
  Work gather(const at::Tensor& out, const at::Tensor& in, int root) {  // out: [size * in], on the root only
    return start({Collective::gather, out, in, ReduceOp::sum, root});
  }
  Work scatter(const at::Tensor& out, const at::Tensor& in, int root) {  // in: [size * out], on the root only
    return start({Collective::scatter, out, in, ReduceOp::sum, root});
  }
  Work send_recv(const at::Tensor& out, int from, const at::Tensor& in, int to) {
    return start({Collective::send_recv, out, in, ReduceOp::sum, 0, from, to});
  }
  // In place.
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) { return all_reduce(tensor, tensor, op); }
  Work broadcast(const at::Tensor& tensor, int root) { return broadcast(tensor, tensor, root); }
  Work reduce(const at::Tensor& tensor, int root, ReduceOp op) { return reduce(tensor, tensor, root, op); }

  // Several operations of one block in one launch (ncclGroupStart/End); order them the same on every rank.
  virtual void group_begin() {}
  virtual void group_end() {}

  // While it lives, operations run in the order of this thread's work on the device, on one queue with it: as
  // they are timed alone, without the events that let them overlap with computing. Empty where there is no
  // such queue.
  virtual std::shared_ptr<void> in_order() { return nullptr; }

  // Moves what is in flight; call after each block. On a GPU failures of other ranks are noticed here, and
  // operations noted that are complete.
  void progress();
  void
  look();  // the same, while the host waits for the device (device/waiting.h): the rank waits for the first

  // color < 0: takes no part, gets nullptr.
  std::unique_ptr<Communicator> split(int color, int key, SplitUse use = SplitUse::anything);
  // Gives back memory that is kept for later operations; nothing may be in flight. Between points, so that
  // the peak of one does not hold what another needed.
  virtual void trim() {}
  // Why operations since the last call had to copy memory of allocate()'s, all communicators of this process
  // together; empty: none had to.
  virtual std::string take_copied() { return ""; }

  const Traffic& traffic() const { return accounts_->traffic; }
  void reset_traffic() { accounts_->traffic = {}; }
  // From now on traffic and exposed time of this communicator count as the other's: for parts of one
  // operation that run on several communicators.
  void count_in(const Communicator& other) { accounts_ = other.accounts_; }
  // Ring bytes that this rank has sent to other nodes in stages of their own, from the start; a NaN where the
  // transport has no such stages.
  virtual double bytes_between_nodes() const { return __builtin_nan(""); }

  // Exposed communication is marked on this timeline: on the CPU all time that start, poll and wait take; on
  // a GPU the time that the compute stream waits in Work::wait(). nullptr: not timed. The timeline must
  // outlive its use here.
  void set_timeline(Timeline* timeline) { accounts_->timeline = timeline; }
  // As this kind, on this communicator from now on; 0 to begin with.
  void expose_as(int64_t kind) { exposed_kind_ = kind; }

  // From now on operations are noted there as they start and complete (comm/watch/heartbeat.h), also those of
  // communicators split off this one later. On a GPU: as they are found complete on the device. nullptr:
  // nowhere. The heartbeat must outlive its use here.
  void set_heartbeat(Heartbeat* heartbeat) { heartbeat_ = heartbeat; }

 protected:
  virtual std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) = 0;
  // nullptr: complete already.
  virtual std::unique_ptr<Operation> do_start(const Call& call) = 0;
  virtual void do_progress() = 0;

 private:
  friend class Work;
  struct Accounts {
    Traffic traffic;
    Timeline* timeline = nullptr;
  };
  struct OnDevice {  // operations that end together, which the heartbeat has not seen complete
    int64_t first, last;
    std::shared_ptr<Ending> ending;
  };
  void note_start(int64_t number, std::shared_ptr<Ending> ending);
  void note_completed();
  std::string where(const std::string& call, int64_t number = 0) const;  // for a failure; 0: no operation
  std::shared_ptr<Accounts> accounts_ = std::make_shared<Accounts>();
  Heartbeat* heartbeat_ = nullptr;
  int64_t exposed_kind_ = 0;
  std::deque<OnDevice> on_device_;  // in the order of their start
};

// Who moves what is in flight over host memory: the computing thread, whenever it starts, polls or waits; or
// a thread of the transport's own, which costs a core. NCCL moves by itself.
enum class MovedBy { caller, thread };

// A transport of the table in specs/specs.h, "mpi", "nccl" or "hierarchical(form=leader)", over the ranks of
// `group`; collective over them. RefusedByAllRanks: unknown transport, NCCL without a GPU, more ranks than
// GPUs on a node, nodes that a form of hierarchical cannot take.
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

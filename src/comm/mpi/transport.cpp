// The mpi transport: the collectives of the MPI library itself, with the algorithms that it chooses. A
// blocking call serves Communicator::run(), a non-blocking one start(). Open MPI has different code for the
// two: OMPI_MCA_coll_tuned_* tunes the blocking ones, and coll/libnbc or coll/adapt run the others.
#include <dlfcn.h>
#include <mpi.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/error.h"
#include "base/reused.h"
#include "comm/in_step.h"
#include "comm/mpi/memory.h"
#include "comm/mpi/sixteen_bits.h"
#include "comm/mpi/yielding.h"
#include "comm/transports.h"
#include "device/device.h"

namespace shardmark {
namespace {

MPI_Datatype mpi_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kHalf:
    case at::kBFloat16:
      return MPI_UINT16_T;  // MPI has no such floating-point type, and the reductions of these bits are ours
    case at::kInt:
      return MPI_INT32_T;
    case at::kLong:
      return MPI_INT64_T;
    default:
      ENSURE(false, std::string("transport mpi does not move ") + at::toString(type));
  }
  return MPI_DATATYPE_NULL;
}

// MPI has no average: it is a sum, divided by finish().
MPI_Op mpi_op(ReduceOp op, at::ScalarType type) {
  if (at::isReducedFloatingType(type)) return sixteen_bit_op(op, type);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return MPI_SUM;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

int count(int64_t elements) {
  ENSURE(elements <= std::numeric_limits<int>::max(),
         "transport mpi: MPI counts elements in 32 bits; take a smaller message or transport pt2pt");
  return static_cast<int>(elements);
}

bool holds(const at::Tensor& side, const at::Tensor& part) {
  const auto* const begin = static_cast<const char*>(side.data_ptr());
  const auto* const at = static_cast<const char*>(part.data_ptr());
  return at >= begin && at < begin + side.nbytes();
}

// Memory for the result of a reduce-scatter in place, used again by later ones.
struct Scratch {
  at::Tensor bytes;

  void* at_least(int64_t size, at::Device device) {
    if (bytes.defined() && bytes.numel() >= size) return bytes.data_ptr();
    bytes.reset();
    if (device.is_cpu()) {
      auto memory = host_memory(size);
      void* const data = memory.get();
      bytes = at::from_blob(
          data, {size}, [memory = std::move(memory)](void*) {}, at::kByte);
    } else {
      bytes = at::empty({size}, at::TensorOptions(at::kByte).device(device));
    }
    return bytes.data_ptr();
  }
};

// The arguments of one call, in MPI's words. It must live until the operation is complete, because MPI reads
// the counts and writes to the buffers until then.
class LibraryCall {
 public:
  LibraryCall(const Call& call, MPI_Comm comm, int rank, int size, Reused<Scratch>& scratch)
      : call_(call), comm_(comm), rank_(rank), size_(size) {
    if (call.what == Collective::all_to_all_v) count_parts();
    // In place, our shard of the input takes the result. MPI's own form would write it over the first shard.
    if (call.what != Collective::reduce_scatter || !holds(call.in, call.out)) return;
    scratch_ = scratch.get([] { return std::make_shared<Scratch>(); });
    result_ = scratch_->at_least(static_cast<int64_t>(call.out.nbytes()), call.out.device());
  }

  // Makes the blocking call where `request` is nullptr. Returns MPI's error code.
  int make(MPI_Request* request) {
    const auto& [what, out, in, op, root, from, to, parts] = call_;
    const at::Tensor& used = call_.uses_in(rank_) ? in : out;
    const MPI_Datatype type = mpi_type(used.scalar_type());
    const void* const source = call_.uses_in(rank_) ? in.data_ptr() : nullptr;
    void* const target = call_.uses_out(rank_) ? out.data_ptr() : nullptr;
    const bool in_place = source != nullptr && target != nullptr && (holds(out, in) || holds(in, out));
    const auto either = [&](auto blocking, auto non_blocking, auto... arguments) {
      if (request != nullptr) return non_blocking(arguments..., comm_, request);
      const YieldsInMpi yields;
      return blocking(arguments..., comm_);
    };
    const auto numel = [](const at::Tensor& side) { return count(side.numel()); };
    switch (what) {
      case Collective::all_reduce:
        return either(MPI_Allreduce, MPI_Iallreduce, in_place ? MPI_IN_PLACE : source, target, numel(in),
                      type, mpi_op(op, in.scalar_type()));
      case Collective::reduce_scatter:
        return either(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, source,
                      result_ != nullptr ? result_ : target, numel(out), type, mpi_op(op, in.scalar_type()));
      case Collective::all_gather:
        return either(MPI_Allgather, MPI_Iallgather, in_place ? MPI_IN_PLACE : source, numel(in), type,
                      target, numel(in), type);
      case Collective::broadcast:
        if (rank_ == root && !in_place) {
          out.view(-1).copy_(in.view(-1));
          synchronize(out.device());
        }
        return either(MPI_Bcast, MPI_Ibcast, target, numel(out), type, root);
      case Collective::reduce:
        return either(MPI_Reduce, MPI_Ireduce, in_place ? MPI_IN_PLACE : source, target, numel(in), type,
                      mpi_op(op, in.scalar_type()), root);
      case Collective::all_to_all: {
        const int chunk = count(in.numel() / size_);
        return either(MPI_Alltoall, MPI_Ialltoall, source, chunk, type, target, chunk, type);
      }
      case Collective::all_to_all_v:
        return either(MPI_Alltoallv, MPI_Ialltoallv, source, sent_.data(), sent_at_.data(), type, target,
                      received_.data(), received_at_.data(), type);
      case Collective::gather:
        return either(MPI_Gather, MPI_Igather, in_place ? MPI_IN_PLACE : source, numel(in), type, target,
                      numel(in), type, root);
      case Collective::scatter:
        return either(MPI_Scatter, MPI_Iscatter, source, numel(out), type, in_place ? MPI_IN_PLACE : target,
                      numel(out), type, root);
      case Collective::send_recv:
        break;  // messages between two ranks: exchange()
    }
    return MPI_ERR_OTHER;
  }

  // What MPI leaves to do once the call is complete.
  void finish() {
    if (result_ != nullptr && call_.out.is_cpu())
      std::memcpy(call_.out.data_ptr(), result_, call_.out.nbytes());
    else if (result_ != nullptr)
      call_.out.copy_(scratch_->bytes.narrow(0, 0, static_cast<int64_t>(call_.out.nbytes()))
                          .view(call_.out.scalar_type())
                          .view_as(call_.out));
    const bool is_average = specs::collective(call_.what).reduces && call_.op == ReduceOp::average;
    if (is_average && call_.uses_out(rank_)) call_.out.div_(size_);
  }

  // Starts both directions of a send_recv. Messages of one pair of ranks arrive in the order in which they
  // are sent, so one tag is enough.
  void exchange(std::vector<MPI_Request>& requests) const {
    const auto& [what, out, in, op, root, from, to, parts] = call_;
    // The other end leaves an empty message out as well.
    if (call_.uses_out(rank_) && out.numel() > 0)
      MPI_CHECK(MPI_Irecv(out.data_ptr(), count(out.numel()), mpi_type(out.scalar_type()), from, 0, comm_,
                          &requests.emplace_back()));
    if (call_.uses_in(rank_) && in.numel() > 0)
      MPI_CHECK(MPI_Isend(in.data_ptr(), count(in.numel()), mpi_type(in.scalar_type()), to, 0, comm_,
                          &requests.emplace_back()));
  }

  bool is_message() const { return call_.what == Collective::send_recv; }

 private:
  void count_parts() {
    int64_t sent = 0, received = 0;
    for (int peer = 0; peer < size_; ++peer) {
      sent_.push_back(count(call_.part(rank_, peer, size_)));
      received_.push_back(count(call_.part(peer, rank_, size_)));
      sent_at_.push_back(count(sent));
      received_at_.push_back(count(received));
      sent += sent_.back();
      received += received_.back();
    }
  }

  Call call_;  // keeps the tensors alive
  MPI_Comm comm_;
  int rank_, size_;
  std::shared_ptr<Scratch> scratch_;
  void* result_ = nullptr;  // in scratch_
  std::vector<int> sent_, sent_at_, received_, received_at_;
};

// An operation in flight, by the library's non-blocking calls.
class InFlight final : public Operation {
 public:
  explicit InFlight(LibraryCall call) : call_(std::move(call)) {
    if (call_.is_message())
      call_.exchange(requests_);
    else
      MPI_CHECK(call_.make(&requests_.emplace_back()));
  }
  bool poll() override {
    if (is_complete_) return true;
    int complete = 0;
    MPI_CHECK(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete == 0) return false;
    call_.finish();
    return is_complete_ = true;
  }
  void wait() override {
    for (Backoff backoff; !poll(); backoff.pause()) {
    }
  }

 private:
  LibraryCall call_;
  std::vector<MPI_Request> requests_;
  bool is_complete_ = false;
};

// The library's blocking call, which wait() makes: so the time in it counts as exposed, and the heartbeat
// knows that the rank waits.
class Blocking final : public Operation {
 public:
  explicit Blocking(LibraryCall call) : call_(std::move(call)) {}
  bool poll() override {
    wait();
    return true;
  }
  void wait() override {
    if (std::exchange(is_complete_, true)) return;
    MPI_CHECK(call_.make(nullptr));
    call_.finish();
  }

 private:
  LibraryCall call_;
  bool is_complete_ = false;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(HostGroup group, at::Device device) : group_(std::move(group)), device_(device) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  at::Device device() const override { return device_; }
  std::string transport() const override { return "mpi"; }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    return device_.is_cpu() ? host_tensor(numel, dtype)
                            : at::zeros({numel}, at::TensorOptions(dtype).device(device_));
  }
  void trim() override { scratch_ = {}; }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse) override {
    HostGroup part = group_.split(color, key);
    return part.size() == 0 ? nullptr : std::make_unique<MpiCommunicator>(std::move(part), device_);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    if (moves_nothing(call)) return nullptr;
    // Open MPI's non-blocking reductions do not take GPU memory.
    if (!device_.is_cpu() && call.what != Collective::send_recv) {
      if (const auto blocking = do_run(call)) blocking->wait();
      return nullptr;
    }
    synchronize(device_);  // MPI knows no streams
    return std::make_unique<InFlight>(library_call(call));
  }
  std::unique_ptr<Operation> do_run(const Call& call) override {
    if (call.what == Collective::send_recv) return do_start(call);
    if (moves_nothing(call)) return nullptr;
    synchronize(device_);
    return std::make_unique<Blocking>(library_call(call));
  }
  // Any call makes progress on all operations of the process; this one changes nothing.
  void do_progress() override {
    int found = 0;
    MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group_.mpi(), &found, MPI_STATUS_IGNORE));
  }

 private:
  LibraryCall library_call(const Call& call) { return {call, group_.mpi(), rank(), size(), scratch_}; }
  // Some libraries refuse two empty buffers, because these have the same address.
  bool moves_nothing(const Call& call) const {
    return call.parts == nullptr && call.payload_bytes(rank(), size()) == 0;
  }

  HostGroup group_;
  at::Device device_;
  Reused<Scratch> scratch_;
};

}  // namespace

specs::MpiServes mpi_serves(at::Device device, const HostGroup& group) {
  using specs::MpiServes;
  // Looked up at run time, because not every MPI has this function.
  const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  const MpiServes here = device.is_cpu()                    ? MpiServes::everything
                         : query != nullptr && query() == 1 ? MpiServes::blocking
                                                            : MpiServes::nothing;
  return static_cast<MpiServes>(group.max(static_cast<int64_t>(here)));
}

std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, at::Device device) {
  if (mpi_serves(device, group) == specs::MpiServes::nothing)
    throw RefusedByAllRanks(
        "transport mpi: this MPI library does not take GPU memory "
        "(MPIX_Query_cuda_support); use a CUDA-aware one, or transport nccl");
  return std::make_unique<MpiCommunicator>(group.split(0, group.rank()), device);
}

}  // namespace shardmark

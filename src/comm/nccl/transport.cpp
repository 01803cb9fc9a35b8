// The nccl transport. Every operation runs on the communicator's stream: after the work that the current
// stream holds when it starts, and before the work that the then current stream gets after Work::wait(). The
// host never blocks.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstdlib>

#include "base/error.h"
#include "comm/nccl/check.h"
#include "comm/nccl/memory.h"
#include "comm/transports.h"
#include "device/device.h"

namespace shardmark {
namespace {

using at::cuda::CUDAEvent;
using at::cuda::CUDAStream;

class NcclOperation final : public Operation {
 public:
  NcclOperation(std::shared_ptr<CUDAEvent> done, const Call& call)
      : done_(std::move(done)), out_(call.out), in_(call.in) {}
  bool poll() override { return true; }
  void wait() override {
    if (done_) done_->block(at::cuda::getCurrentCUDAStream());
  }

 private:
  std::shared_ptr<CUDAEvent> done_;  // of the operation, or of its group; none where streams are the same
  at::Tensor out_, in_;
};

ncclDataType_t nccl_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    default:
      ENSURE(false, std::string("NCCL does not move ") + at::toString(tensor.scalar_type()));
  }
  return ncclNumTypes;
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::average:
      return ncclAvg;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
  }
  return ncclNumOps;
}

size_t count_of(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }

ncclResult_t send_and_receive(const Call& call, ncclComm_t comm, cudaStream_t stream) {
  GPU_CHECK(ncclGroupStart());
  const ncclResult_t sent =
      ncclSend(call.in.data_ptr(), count_of(call.in), nccl_type(call.in), call.to, comm, stream);
  const ncclResult_t received =
      ncclRecv(call.out.data_ptr(), count_of(call.out), nccl_type(call.out), call.from, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  return sent != ncclSuccess ? sent : received != ncclSuccess ? received : ended;
}

// A side that this rank does not use is given as the other: NCCL looks at it no further than that.
ncclResult_t enqueue(const Call& call, int size, ncclComm_t comm, cudaStream_t stream) {
  const at::Tensor& out = call.out.defined() ? call.out : call.in;
  const at::Tensor& in = call.in.defined() ? call.in : call.out;
  const void* const from = in.data_ptr();
  void* const to = out.data_ptr();
  const ncclDataType_t type = nccl_type(in);
  const ncclRedOp_t op = nccl_op(call.op);
  switch (call.what) {
    case Collective::all_reduce:
      return ncclAllReduce(from, to, count_of(in), type, op, comm, stream);
    case Collective::reduce_scatter:
      return ncclReduceScatter(from, to, count_of(out), type, op, comm, stream);
    case Collective::all_gather:
      return ncclAllGather(from, to, count_of(in), type, comm, stream);
    case Collective::broadcast:
      return ncclBroadcast(from, to, count_of(out), type, call.root, comm, stream);
    case Collective::reduce:
      return ncclReduce(from, to, count_of(in), type, op, call.root, comm, stream);
    case Collective::all_to_all:
      return ncclAlltoAll(from, to, count_of(in) / static_cast<size_t>(size), type, comm, stream);
    case Collective::gather:
      return ncclGather(from, to, count_of(in), type, call.root, comm, stream);
    case Collective::scatter:
      return ncclScatter(from, to, count_of(out), type, call.root, comm, stream);
    case Collective::send_recv:
      return send_and_receive(call, comm, stream);
  }
  return ncclInvalidArgument;
}

// Events that are used again when nobody holds them any more: to make one costs a call of the driver.
class EventPool {
 public:
  std::shared_ptr<CUDAEvent> get() {
    for (size_t tried = 0; tried < events_.size(); ++tried) {
      const std::shared_ptr<CUDAEvent>& event = events_[next_++ % events_.size()];
      if (event.use_count() == 1) return event;
    }
    return events_.emplace_back(std::make_shared<CUDAEvent>());
  }

 private:
  std::vector<std::shared_ptr<CUDAEvent>> events_;
  size_t next_ = 0;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(HostGroup group, at::Device device)
      : group_(std::move(group)),
        device_(device),
        stream_(at::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())),
        comm_(std::make_shared<NcclComm>(group_, device)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  at::Device device() const override { return device_; }
  std::string transport() const override { return "nccl"; }

  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    return nccl_tensor(comm_, numel, dtype, device_);
  }

  void group_begin() override {
    ENSURE(!grouped_, "groups do not nest");
    grouped_ = events_.get();
    GPU_CHECK(ncclGroupStart());
  }
  void group_end() override {
    const auto done = std::move(grouped_);
    GPU_CHECK(ncclGroupEnd());  // the operations are on the stream only now
    done->record(stream_);
  }

  std::shared_ptr<void> in_order() override { return std::make_shared<c10::cuda::CUDAStreamGuard>(stream_); }

  void abort() noexcept override { comm_->abort(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key) override {
    HostGroup part = group_.split(color, key);
    return part.size() == 0 ? nullptr : std::make_unique<NcclCommunicator>(std::move(part), device_);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    const c10::cuda::CUDAGuard guard(device_);
    const CUDAStream current = at::cuda::getCurrentCUDAStream();
    if (current != stream_) {
      ready_.record(current);
      ready_.block(stream_);
    }
    GPU_CHECK(enqueue(call, size(), comm_->get(), stream_));
    auto done = grouped_;
    if (!done && current != stream_) {
      done = events_.get();
      done->record(stream_);
    }
    return std::make_unique<NcclOperation>(std::move(done), call);
  }
  // NCCL moves by itself; this is where a peer's failure is noticed.
  void do_progress() override {
    ncclResult_t state = ncclSuccess;
    GPU_CHECK(ncclCommGetAsyncError(comm_->get(), &state));
    GPU_CHECK(state);
  }

 private:
  HostGroup group_;
  at::Device device_;
  CUDAStream stream_;
  std::shared_ptr<NcclComm> comm_;
  CUDAEvent ready_;  // a wait for an event keeps the record that it saw, so one event serves all operations
  EventPool events_;
  std::shared_ptr<CUDAEvent> grouped_;
};

// Ranks of the group on this node.
int num_local_ranks(const HostGroup& group) {
  MPI_Comm node = MPI_COMM_NULL;
  int size = 0;
  MPI_CHECK(MPI_Comm_split_type(group.mpi(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  MPI_CHECK(MPI_Comm_size(node, &size));
  MPI_CHECK(MPI_Comm_free(&node));
  return size;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const HostGroup& group, at::Device device) {
  const int64_t without_gpu = group.max(int64_t{device.is_cuda() ? 0 : 1});
  if (without_gpu != 0)
    throw UsageError("transport nccl needs a GPU for every rank; use transport mpi on CPUs");
  // With NCCL_HOSTID set per process ranks may share a GPU over sockets: a test of function, not of speed.
  const bool emulated = std::getenv("NCCL_HOSTID") != nullptr;
  const int num_ranks = num_local_ranks(group);
  // A scheduler may show each rank its own GPU alone: the preflight looks whether they differ.
  const bool one_each = num_gpus() == 1;
  const int64_t missing = group.max(int64_t{emulated || one_each ? 0 : num_ranks - num_gpus()});
  if (missing > 0) {
    throw UsageError("transport nccl: a node has " + std::to_string(missing) +
                     " more ranks than GPUs; start at most one rank per GPU");
  }
  return std::make_unique<NcclCommunicator>(group.split(0, group.rank()), device);
}

}  // namespace shardmark

// The nccl transport. Every operation runs on the communicator's own stream. That stream first waits for the
// work that is on the current stream when the operation starts. Work::wait() makes the stream that is current
// then wait for the operation. The host never blocks.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"
#include "base/reused.h"
#include "comm/in_step.h"
#include "comm/nccl/check.h"
#include "comm/nccl/launch_order.h"
#include "comm/nccl/memory.h"
#include "comm/nccl/messages.h"
#include "comm/transports.h"
#include "device/device.h"
#include "device/own_stream.h"

namespace shardmark {
namespace {

using at::cuda::CUDAEvent;
using at::cuda::CUDAStream;

// The completion of an operation, or of the group that it was launched in.
struct EventEnding final : Ending {
  bool is_reached() override { return is_recorded && event.query(); }
  void record(CUDAStream stream) {
    event.record(stream);
    is_recorded = true;
  }
  CUDAEvent event;
  bool is_recorded = false;  // since the last reuse of this object
};

// The completion of operations that run in order with everything else on their stream, and so need no event
// of their own.
struct StreamEnding final : Ending {
  explicit StreamEnding(CUDAStream of) : stream(of) {}
  bool is_reached() override { return stream.query(); }
  CUDAStream stream;
};

class NcclOperation final : public Operation {
 public:
  NcclOperation(std::shared_ptr<EventEnding> done, std::shared_ptr<Ending> ending, const Call& call)
      : done_(std::move(done)), ending_(std::move(ending)), out_(call.out), in_(call.in) {}
  bool poll() override { return true; }
  void wait() override {
    if (done_) done_->event.block(at::cuda::getCurrentCUDAStream());
  }
  std::shared_ptr<Ending> ending() const override { return ending_; }

 private:
  std::shared_ptr<EventEnding> done_;  // nullptr if both streams are the same
  std::shared_ptr<Ending> ending_;
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

ncclResult_t exchange(const std::vector<Message>& messages, ncclComm_t comm, cudaStream_t stream) {
  GPU_CHECK(ncclGroupStart());
  ncclResult_t result = ncclSuccess;
  for (const auto& [peer, out, in] : messages) {
    if (result == ncclSuccess && in.defined())
      result = ncclSend(in.data_ptr(), count_of(in), nccl_type(in), peer, comm, stream);
    if (result == ncclSuccess && out.defined())
      result = ncclRecv(out.data_ptr(), count_of(out), nccl_type(out), peer, comm, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

// Functions of NCCL 2.28. They are looked up by name at run time: a direct reference would keep the program
// from loading where the site's NCCL is older.
using AllToAll = ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
using Rooted = ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// If this rank uses only one side, that side is passed for the other as well; NCCL ignores it.
ncclResult_t enqueue(const Call& call, int rank, int size, ncclComm_t comm, cudaStream_t stream) {
  static const auto all_to_all = found<AllToAll>("ncclAlltoAll");
  static const auto gather = found<Rooted>("ncclGather"), scatter = found<Rooted>("ncclScatter");
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
      if (all_to_all == nullptr) break;
      return all_to_all(from, to, count_of(in) / static_cast<size_t>(size), type, comm, stream);
    case Collective::gather:
      if (gather == nullptr) break;
      return gather(from, to, count_of(in), type, call.root, comm, stream);
    case Collective::scatter:
      if (scatter == nullptr) break;
      return scatter(from, to, count_of(out), type, call.root, comm, stream);
    case Collective::send_recv:
    case Collective::all_to_all_v:
      break;
  }
  return exchange(messages_of(call, rank, size), comm, stream);
}

#ifdef NCCL_SIM_INFO_INITIALIZER  // from NCCL 2.22 on
// The seconds that NCCL expects the operation to take. NaN where the loaded NCCL is older, or does not say,
// as of messages between two ranks.
double simulated_s(const Call& call, int rank, int size, ncclComm_t comm, cudaStream_t stream) {
  using SimulateEnd = ncclResult_t(ncclSimInfo_t*);
  static const auto simulate_end = found<SimulateEnd>("ncclGroupSimulateEnd");
  if (simulate_end == nullptr) return __builtin_nan("");
  GPU_CHECK(ncclGroupStart());
  const ncclResult_t enqueued = enqueue(call, rank, size, comm, stream);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  const ncclResult_t simulated = simulate_end(&info);  // closes the group, and launches nothing
  GPU_CHECK(enqueued);
  return simulated == ncclSuccess && info.estimatedTime > 0 ? info.estimatedTime * 1e-6 : __builtin_nan("");
}
#else
double simulated_s(const Call&, int, int, ncclComm_t, cudaStream_t) { return __builtin_nan(""); }
#endif

// The stream of a new communicator: its own, or one for all communicators if NCCL cannot order launches.
// Note [Order of launches] says why.
std::shared_ptr<const c10::Stream> stream_of(at::Device device) {
  if (nccl_serving() == strategies::Serving::launch_order) return own_stream(device);
  static const auto shared = own_stream(device);  // a process uses one device
  return shared;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(HostGroup group, at::Device device, std::shared_ptr<NcclComm> comm)
      : group_(std::move(group)),
        device_(device),
        own_stream_(stream_of(device)),
        stream_(*own_stream_),
        comm_(std::move(comm)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  at::Device device() const override { return device_; }
  std::string transport() const override { return "nccl"; }

  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    at::Tensor tensor = nccl_tensor(numel, dtype, device_);
    if (numel > 0) registrations().use(tensor.data_ptr(), comm_);
    return tensor;
  }
  std::string take_copied() override { return registrations().take_failure(); }

  void group_begin() override {
    ENSURE(!grouped_, "groups do not nest");
    grouped_ = event();
    GPU_CHECK(ncclGroupStart());
  }
  void group_end() override {
    const auto done = std::move(grouped_);
    GPU_CHECK(ncclGroupEnd());  // enqueues the operations
    done->record(stream_);
  }

  double estimate_s(const Call& call) override {
    const c10::cuda::CUDAGuard guard(device_);
    return simulated_s(call, rank(), size(), comm_->get(), stream_);
  }

  std::shared_ptr<void> in_order() override { return std::make_shared<c10::cuda::CUDAStreamGuard>(stream_); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    const c10::cuda::CUDAGuard guard(device_);
    HostGroup part = group_.split(color, key);
    // ncclCommSplit allows nothing in flight.
    synchronize(device_);
    auto comm = comm_->split(color, key, use);
    return comm ? std::make_unique<NcclCommunicator>(std::move(part), device_, std::move(comm)) : nullptr;
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    const c10::cuda::CUDAGuard guard(device_);
    const CUDAStream current = at::cuda::getCurrentCUDAStream();
    // The operation follows the work so far on the current stream. With in_order() both streams are the
    // same, and no event is needed.
    if (current != stream_) {
      ready_.record(current);
      ready_.block(stream_);
    }
    for (const at::Tensor* side : {&call.out, &call.in})
      if (side->defined()) registrations().use(side->data_ptr(), comm_);
    GPU_CHECK(enqueue(call, rank(), size(), comm_->get(), stream_));
    // In a group NCCL enqueues operations only when the group ends. They share the event that is recorded
    // then.
    auto done = grouped_;
    if (!done && current != stream_) {
      done = event();
      done->record(stream_);
    }
    return std::make_unique<NcclOperation>(done, done ? std::shared_ptr<Ending>(done) : in_order_, call);
  }
  // NCCL progresses by itself. Failures of peers are noticed here, also while the host waits for the device.
  void do_progress() override {
    ncclResult_t state = ncclSuccess;
    GPU_CHECK(ncclCommGetAsyncError(comm_->get(), &state));
    GPU_CHECK(state);
  }

 private:
  std::shared_ptr<EventEnding> event() {
    auto event = events_.get([] { return std::make_shared<EventEnding>(); });
    event->is_recorded = false;
    return event;
  }

  HostGroup group_;
  at::Device device_;
  std::shared_ptr<const c10::Stream> own_stream_;
  CUDAStream stream_;
  std::shared_ptr<NcclComm> comm_;
  // One event serves all operations, because a stream that waits for an event keeps waiting for the record it
  // saw.
  CUDAEvent ready_;
  Reused<EventEnding> events_;
  std::shared_ptr<EventEnding> grouped_;
  std::shared_ptr<Ending> in_order_ = std::make_shared<StreamEnding>(stream_);
  WhileWaiting waiting_{[this] { look(); }};
};

// The number of ranks of the group on this node.
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
  if (without_gpu != 0) throw RefusedByAllRanks(kNeedsGpu);
  // With NCCL_HOSTID set per process, ranks may share a GPU over sockets. That tests function, not speed.
  const bool emulated = std::getenv("NCCL_HOSTID") != nullptr;
  const int num_ranks = num_local_ranks(group);
  // A scheduler may show each rank only its own GPU. The preflight checks that these differ.
  const bool one_each = num_gpus() == 1;
  const int64_t missing = group.max(int64_t{emulated || one_each ? 0 : num_ranks - num_gpus()});
  if (missing > 0) {
    throw RefusedByAllRanks("transport nccl: a node has " + std::to_string(missing) +
                            " more ranks than GPUs; start at most one rank per GPU");
  }
  static_cast<void>(nccl_serving());  // must precede the first communicator
  HostGroup own = group.split(0, group.rank());
  auto comm = std::make_shared<NcclComm>(own, device);
  return std::make_unique<NcclCommunicator>(std::move(own), device, std::move(comm));
}

}  // namespace shardmark

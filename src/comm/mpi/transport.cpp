// The mpi transport. It passes each collective to the engine as a job, and gives the engine messages and
// memory of MPI: point-to-point messages, and host memory in huge pages.
#include <mpi.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "comm/host_group.h"
#include "comm/mpi/engine/engine.h"
#include "comm/mpi/jobs.h"
#include "comm/transports.h"
#include "device/meter.h"

namespace shardmark {
namespace {

constexpr int64_t kHugePage = 2 << 20;

// Page-aligned host memory. With a `use`, the meter counts it under that use for as long as it lives.
std::shared_ptr<char> host_memory(int64_t bytes) {
  // Within a node Open MPI lets a peer read our memory directly (cross-memory attach): the kernel pins the
  // pages and copies once. With huge pages there are fewer pages to pin, so the read is cheaper.
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  const int64_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size));
  if (memory == nullptr && size > 0)
    throw OutOfMemory("the system could not allocate " + format_bytes(static_cast<double>(bytes)));
  if (alignment == kHugePage) madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);  // a hint: may fail
  return {static_cast<char*>(memory), [](char* data) { std::free(data); }};
}

std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use) {
  meter::add(bytes, use);
  const std::shared_ptr<void> counted(nullptr, [bytes, use](void*) { meter::remove(bytes, use); });
  std::shared_ptr<char> memory = host_memory(bytes);
  char* const data = memory.get();
  return {data, [memory = std::move(memory), counted](char*) mutable { memory.reset(); }};
}

class MpiMessages final : public Messages {
 public:
  explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}

  void send(const void* data, int64_t bytes, int peer, int tag) override {
    MPI_CHECK(
        MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_.emplace_back()));
  }
  void receive(void* data, int64_t bytes, int peer, int tag) override {
    MPI_CHECK(
        MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_.emplace_back()));
  }
  bool complete() override {
    int complete = 0;
    MPI_CHECK(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete != 0) requests_.clear();
    return complete != 0;
  }
  bool cancel() override { return requests_.empty(); }  // MPI cannot cancel sends

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

// What the engine gets from MPI: messages and memory.
class MpiWire final : public Wire {
 public:
  explicit MpiWire(MPI_Comm comm) : comm_(comm) {}
  std::unique_ptr<Messages> messages() override { return std::make_unique<MpiMessages>(comm_); }
  // Buffers of chunks in flight, a few per communicator. The meter does not count them. It cannot see the
  // buffers inside MPI or NCCL either; counting ours would make a step over MPI seem to need more memory than
  // the same step over another transport.
  std::shared_ptr<char> memory(int64_t bytes) override { return host_memory(bytes); }

 private:
  MPI_Comm comm_;
};

class MpiOperation final : public Operation {
 public:
  MpiOperation(Engine& engine, std::shared_ptr<const RunningJob> job)
      : engine_(engine), job_(std::move(job)) {}
  bool poll() override {
    if (!job_->done()) engine_.progress();
    return job_->done();
  }
  void wait() override { engine_.wait(*job_); }

 private:
  Engine& engine_;
  std::shared_ptr<const RunningJob> job_;
};

Job job_of(const HostGroup& group, const Call& call) {
  const auto& [what, out, in, op, root, from, to, parts] = call;
  switch (what) {
    case Collective::all_reduce:
      return all_reduce_job(group, out, in, op);
    case Collective::reduce_scatter:
      return reduce_scatter_job(group, out, in, op);
    case Collective::all_gather:
      return all_gather_job(group, out, in);
    case Collective::broadcast:
      return broadcast_job(group, out, in, root);
    case Collective::reduce:
      return reduce_job(group, out, in, root, op);
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return all_to_all_job(group, call);
    case Collective::gather:
      return gather_job(group, out, in, root);
    case Collective::scatter:
      return scatter_job(group, out, in, root);
    case Collective::send_recv:
      return send_recv_job(group, out, from, in, to);
  }
  return {};
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(HostGroup group, MovedBy moved_by,
                  Engine::Siblings siblings = std::make_shared<std::vector<Engine*>>())
      : group_(std::move(group)),
        wire_(group_.mpi()),
        engine_(wire_, moved_by == MovedBy::thread && group_.size() > 1, std::move(siblings)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  at::Device device() const override { return at::kCPU; }
  std::string transport() const override { return "mpi"; }

  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    const int64_t bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
    auto memory = host_memory(bytes, meter::current_use());
    std::memset(memory.get(), 0, static_cast<size_t>(bytes));
    void* data = memory.get();
    return at::from_blob(
        data, {numel}, [memory = std::move(memory)](void*) mutable { memory.reset(); }, dtype);
  }

  void trim() override { engine_.trim(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse) override {
    HostGroup part = group_.split(color, key);
    const MovedBy moved_by = engine_.has_thread() ? MovedBy::thread : MovedBy::caller;
    return part.size() == 0
               ? nullptr
               : std::make_unique<MpiCommunicator>(std::move(part), moved_by, engine_.siblings());
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    auto running = engine_.start(job_of(group_, call));
    return running->done() ? nullptr : std::make_unique<MpiOperation>(engine_, std::move(running));
  }
  void do_progress() override { engine_.progress(); }

 private:
  HostGroup group_;
  MpiWire wire_;
  Engine engine_;  // last: it uses both
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, MovedBy moved_by) {
  return std::make_unique<MpiCommunicator>(group.split(0, group.rank()), moved_by);  // messages of its own
}

}  // namespace shardmark

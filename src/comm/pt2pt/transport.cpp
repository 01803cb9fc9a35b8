// The pt2pt transport. It passes each collective to the engine as a job, and gives the engine MPI's
// point-to-point messages and host memory in huge pages.
#include <mpi.h>

#include <vector>

#include "comm/host_group.h"
#include "comm/mpi/memory.h"
#include "comm/pt2pt/engine/engine.h"
#include "comm/pt2pt/jobs.h"
#include "comm/transports.h"

namespace shardmark {
namespace {

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

class Pt2PtOperation final : public Operation {
 public:
  Pt2PtOperation(Engine& engine, std::shared_ptr<const RunningJob> job)
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

class Pt2PtCommunicator final : public Communicator {
 public:
  Pt2PtCommunicator(HostGroup group, MovedBy moved_by,
                    Engine::Siblings siblings = std::make_shared<std::vector<Engine*>>())
      : group_(std::move(group)),
        wire_(group_.mpi()),
        engine_(wire_, moved_by == MovedBy::thread && group_.size() > 1, std::move(siblings)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  at::Device device() const override { return at::kCPU; }
  std::string transport() const override { return "pt2pt"; }

  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return host_tensor(numel, dtype); }

  void trim() override { engine_.trim(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse) override {
    HostGroup part = group_.split(color, key);
    const MovedBy moved_by = engine_.has_thread() ? MovedBy::thread : MovedBy::caller;
    return part.size() == 0
               ? nullptr
               : std::make_unique<Pt2PtCommunicator>(std::move(part), moved_by, engine_.siblings());
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    auto running = engine_.start(job_of(group_, call));
    return running->done() ? nullptr : std::make_unique<Pt2PtOperation>(engine_, std::move(running));
  }
  void do_progress() override { engine_.progress(); }

 private:
  HostGroup group_;
  MpiWire wire_;
  Engine engine_;  // last: it uses both
};

}  // namespace

std::unique_ptr<Communicator> make_pt2pt_communicator(const HostGroup& group, MovedBy moved_by) {
  return std::make_unique<Pt2PtCommunicator>(group.split(0, group.rank()), moved_by);  // messages of its own
}

}  // namespace shardmark

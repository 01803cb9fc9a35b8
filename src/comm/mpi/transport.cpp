// The mpi transport. It passes each collective to the engine as a job.
#include <cstring>

#include "base/error.h"
#include "comm/mpi/jobs.h"
#include "comm/mpi/wire.h"
#include "comm/transports.h"
#include "device/meter.h"

namespace shardmark {
namespace {

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

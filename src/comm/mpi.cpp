// The mpi transport: hands each collective to the engine as a job.
#include "comm/mpi.h"

#include <cstring>

#include "base/error.h"
#include "comm/mpi_jobs.h"
#include "comm/mpi_wire.h"
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

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(HostGroup group, MovedBy moved_by)
      : group_(std::move(group)),
        wire_(group_.mpi()),
        engine_(wire_, moved_by == MovedBy::thread && group_.size() > 1) {}

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

  void abort() noexcept override { engine_.abort(); }
  void trim() override { engine_.trim(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key) override {
    HostGroup part = group_.split(color, key);
    const MovedBy moved_by = engine_.has_thread() ? MovedBy::thread : MovedBy::caller;
    return part.size() == 0 ? nullptr : std::make_unique<MpiCommunicator>(std::move(part), moved_by);
  }
  using Started = std::unique_ptr<Operation>;
  using Tensor = const at::Tensor&;
  Started do_all_reduce(Tensor out, Tensor in, ReduceOp op) override {
    return start(all_reduce_job(group_, out, in, op));
  }
  Started do_reduce_scatter(Tensor out, Tensor in, ReduceOp op) override {
    return start(reduce_scatter_job(group_, out, in, op));
  }
  Started do_all_gather(Tensor out, Tensor in) override { return start(all_gather_job(group_, out, in)); }
  Started do_broadcast(Tensor out, Tensor in, int root) override {
    return start(broadcast_job(group_, out, in, root));
  }
  Started do_reduce(Tensor out, Tensor in, int root, ReduceOp op) override {
    return start(reduce_job(group_, out, in, root, op));
  }
  Started do_all_to_all(Tensor out, Tensor in) override { return start(all_to_all_job(group_, out, in)); }
  Started do_gather(Tensor out, Tensor in, int root) override {
    return start(gather_job(group_, out, in, root));
  }
  Started do_scatter(Tensor out, Tensor in, int root) override {
    return start(scatter_job(group_, out, in, root));
  }
  Started do_send_recv(Tensor out, int from, Tensor in, int to) override {
    return start(send_recv_job(group_, out, from, in, to));
  }
  void do_progress() override { engine_.progress(); }

 private:
  Started start(Job job) {
    auto running = engine_.start(std::move(job));
    return running->done() ? nullptr : std::make_unique<MpiOperation>(engine_, std::move(running));
  }

  HostGroup group_;
  MpiWire wire_;
  Engine engine_;  // last: it uses both
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, MovedBy moved_by) {
  return std::make_unique<MpiCommunicator>(group.split(0, group.rank()), moved_by);  // messages of its own
}

}  // namespace shardmark

// The mpi transport: hands each collective to the engine as a job.
#include "comm/mpi.h"

#include <cstring>

#include "base/error.h"
#include "comm/mpi_engine.h"
#include "comm/mpi_jobs.h"
#include "device/meter.h"

namespace shardmark {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(HostGroup group, MovedBy moved_by) : engine_(std::move(group), moved_by) {}

  int rank() const override { return group().rank(); }
  int size() const override { return group().size(); }
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

  std::unique_ptr<Communicator> split(int color, int key) override {
    HostGroup part = group().split(color, key);
    return part.size() == 0 ? nullptr
                            : std::make_unique<MpiCommunicator>(std::move(part), engine_.moved_by());
  }
  void abort() noexcept override { engine_.abort(); }
  void trim() override { engine_.trim(); }

 protected:
  using Started = std::unique_ptr<Operation>;
  using Tensor = const at::Tensor&;
  Started do_all_reduce(Tensor out, Tensor in, ReduceOp op) override {
    return engine_.start(all_reduce_job(group(), out, in, op));
  }
  Started do_reduce_scatter(Tensor out, Tensor in, ReduceOp op) override {
    return engine_.start(reduce_scatter_job(group(), out, in, op));
  }
  Started do_all_gather(Tensor out, Tensor in) override {
    return engine_.start(all_gather_job(group(), out, in));
  }
  Started do_broadcast(Tensor out, Tensor in, int root) override {
    return engine_.start(broadcast_job(group(), out, in, root));
  }
  Started do_reduce(Tensor out, Tensor in, int root, ReduceOp op) override {
    return engine_.start(reduce_job(group(), out, in, root, op));
  }
  Started do_all_to_all(Tensor out, Tensor in) override {
    return engine_.start(all_to_all_job(group(), out, in));
  }
  Started do_gather(Tensor out, Tensor in, int root) override {
    return engine_.start(gather_job(group(), out, in, root));
  }
  Started do_scatter(Tensor out, Tensor in, int root) override {
    return engine_.start(scatter_job(group(), out, in, root));
  }
  Started do_send_recv(Tensor out, int from, Tensor in, int to) override {
    return engine_.start(send_recv_job(group(), out, from, in, to));
  }
  void do_progress() override { engine_.progress(); }

 private:
  const HostGroup& group() const { return engine_.group(); }
  MpiEngine engine_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, MovedBy moved_by) {
  return std::make_unique<MpiCommunicator>(group.split(0, group.rank()), moved_by);  // messages of its own
}

}  // namespace shardmark

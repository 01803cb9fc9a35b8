// Makes transports by name, and the communicator of a rank that is alone.
#include "comm/transports.h"

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/in_step.h"
#include "comm/nccl/launch_order.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

// Every collective over one rank is a copy, or nothing where it works in place.
class Alone final : public Communicator {
 public:
  Alone(at::Device device, std::string transport) : device_(device), transport_(std::move(transport)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  at::Device device() const override { return device_; }
  std::string transport() const override { return transport_; }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    return at::zeros({numel}, at::TensorOptions(dtype).device(device_));
  }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int, SplitUse) override {
    return color < 0 ? nullptr : std::make_unique<Alone>(device_, transport_);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    if (call.uses_in(0) && call.uses_out(0) && call.out.data_ptr() != call.in.data_ptr())
      call.out.view(-1).copy_(call.in.view(-1));
    return nullptr;
  }
  void do_progress() override {}

 private:
  at::Device device_;
  std::string transport_;
};

Choice choice_of(const std::string& transport) {
  try {
    const Choice named = choice_from_text(transport);
    return resolve(named, specs::transport_options(named.name), "transport");
  } catch (const UsageError& error) {
    throw RefusedByAllRanks(error.what());
  }
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const std::string& transport, const HostGroup& group,
                                                at::Device device, MovedBy moved_by) {
  const auto where = [] { return std::string("the making of a communicator"); };
  return in_step(group.size(), where, [&] {
    const std::string name = choice_of(transport).name;
    if (name == "mpi") return make_mpi_communicator(group, device);
    const bool is_nccl = device.is_cuda() || name == "nccl";  // its error says what is missing
    auto flat = is_nccl ? make_nccl_communicator(group, device) : make_pt2pt_communicator(group, moved_by);
    return make_around(transport, std::move(flat), group);
  });
}

strategies::Serving serving_of(at::Device device) {
  return device.is_cuda() ? nccl_serving() : strategies::Serving::own;
}

strategies::Serving serving_of(at::Device device, const HostGroup& group) {
  return static_cast<strategies::Serving>(group.max(static_cast<int64_t>(serving_of(device))));
}

std::unique_ptr<Communicator> make_around(const std::string& transport, std::unique_ptr<Communicator> flat,
                                          const HostGroup& group) {
  const Choice choice = choice_of(transport);
  if (choice.name == "hierarchical")
    return make_hierarchical_communicator(choice.options, std::move(flat), group);
  if (choice.name == "mpi") return make_mpi_communicator(group, flat->device());
  if (choice.name == flat->transport()) return flat;
  throw RefusedByAllRanks(choice.name == "nccl" ? kNeedsGpu : kNeedsHost);
}

std::unique_ptr<Communicator> make_alone(const Communicator& all) {
  return std::make_unique<Alone>(all.device(), all.transport());
}

}  // namespace shardmark

// The transports by name.
#include "comm/transports.h"

#include "base/error.h"
#include "comm/communicator.h"
#include "specs/specs.h"

namespace shardmark {

std::unique_ptr<Communicator> make_communicator(const std::string& transport, const HostGroup& group,
                                                at::Device device, MovedBy moved_by) {
  const Choice named = choice_from_text(transport);
  const Choice choice = resolve(named, specs::transport_options(named.name), "transport");
  if (choice.name == "hierarchical")
    return make_hierarchical_communicator(choice.options, group, device, moved_by);
  if (choice.name == "nccl") return make_nccl_communicator(group, device);
  if (!device.is_cpu()) throw UsageError("transport mpi moves host memory: use nccl on a GPU");
  return make_mpi_communicator(group, moved_by);
}

}  // namespace shardmark

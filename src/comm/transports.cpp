// The transports by name.
#include "base/error.h"
#include "comm/communicator.h"
#include "comm/mpi.h"
#include "comm/nccl.h"

namespace shardmark {

std::unique_ptr<Communicator> make_communicator(const std::string& transport, const HostGroup& group,
                                                at::Device device, MovedBy moved_by) {
  if (transport == "mpi") {
    if (!device.is_cpu()) throw UsageError("transport mpi moves host memory: use nccl on a GPU");
    return make_mpi_communicator(group, moved_by);
  }
  if (transport == "nccl") return make_nccl_communicator(group, device);
  throw UsageError("unknown transport '" + transport + "'; known: mpi, nccl");
}

}  // namespace shardmark

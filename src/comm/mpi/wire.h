// What the engine of the mpi transport gets from MPI: messages; and its memory.
#pragma once

#include <mpi.h>

#include "comm/mpi/engine/messages.h"
#include "device/meter.h"

namespace shardmark {

// Page-aligned host memory; counted by the meter as `use` for as long as it lives, or not counted.
std::shared_ptr<char> host_memory(int64_t bytes);
std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use);

class MpiWire final : public Wire {
 public:
  explicit MpiWire(MPI_Comm comm) : comm_(comm) {}
  std::unique_ptr<Messages> messages() override;
  // Buffers of chunks in flight, a few for each communicator. No meter sees those inside MPI or NCCL, and a
  // step that counted ours would need more memory over MPI messages than the same step elsewhere.
  std::shared_ptr<char> memory(int64_t bytes) override { return host_memory(bytes); }

 private:
  MPI_Comm comm_;
};

}  // namespace shardmark

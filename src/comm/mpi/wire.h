// What the engine of the mpi transport gets from MPI: messages and memory.
#pragma once

#include <mpi.h>

#include "comm/mpi/engine/messages.h"
#include "device/meter.h"

namespace shardmark {

// Page-aligned host memory. With a `use`, the meter counts it under that use for as long as it lives.
std::shared_ptr<char> host_memory(int64_t bytes);
std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use);

class MpiWire final : public Wire {
 public:
  explicit MpiWire(MPI_Comm comm) : comm_(comm) {}
  std::unique_ptr<Messages> messages() override;
  // Buffers of chunks in flight, a few per communicator. The meter does not count them. It cannot see the
  // buffers inside MPI or NCCL either; counting ours would make a step over MPI seem to need more memory than
  // the same step over another transport.
  std::shared_ptr<char> memory(int64_t bytes) override { return host_memory(bytes); }

 private:
  MPI_Comm comm_;
};

}  // namespace shardmark

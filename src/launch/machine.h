// What this node offers to a launch, read from the system without MPI or CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmark {

struct Machine {
  int64_t num_gpus = 0;    // visible to this process
  int64_t num_cores = 1;   // within the affinity mask and the container's quota
  int64_t free_bytes = 0;  // memory, within the container's limit
  bool is_root = false;
  bool has_open_mpi = false;  // mpirun is that of Open MPI, whose flags we know
};

Machine read_machine();

}  // namespace shardmark

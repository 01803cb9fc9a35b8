// What this node offers to a launch, read from the system without MPI and CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmark {

struct Machine {
  int64_t num_gpus = 0;    // that this process may see
  int64_t num_cores = 1;   // for us: inside the affinity mask and the container's quota
  int64_t free_bytes = 0;  // memory, inside the container's limit
  bool is_root = false;
  bool has_open_mpi = false;  // mpirun is Open MPI's, whose flags we know
};

Machine read_machine();

}  // namespace shardmark

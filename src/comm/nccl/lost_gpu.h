// GPUs that a process cannot use any more.
//
// Note [Lost GPUs]: after some errors every later call of CUDA in the process fails as well: its context is
// gone (an illegal access, an assertion on the device, an uncorrectable error of memory), or the GPU is (it
// has fallen off the bus). No later point could be measured, and the other ranks wait in NCCL for
// this one. So the job ends at the place where the error is met, before destructors call CUDA and NCCL again:
// the point is the one to blame, and `launch` goes on in a new job.
#pragma once

#include <string>

namespace shardmark {

// By the error messages of CUDA and NVML.
bool tells_of_lost_gpu(const std::string& error);

// "rank 3 on node2 has lost GPU 3 (0000:17:00.0): CUDA error: ...; what to type".
std::string lost_gpu_line(int rank, const std::string& host, const std::string& gpu,
                          const std::string& error);

// Ends the job with kSystem and that line, where the error reports a lost GPU, or CUDA does when it is asked
// (cuBLAS and NCCL have their own messages for CUDA's errors). Returns where it does not.
void end_job_if_gpu_is_lost(const std::string& error);

}  // namespace shardmark

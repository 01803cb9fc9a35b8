// Errors after which a process cannot use its GPU any more.
//
// Note [Lost GPUs]: after some errors every later CUDA call of the process fails, too. Either the context is
// gone (an illegal access, an assertion on the device, an uncorrectable memory error) or the GPU is (it has
// fallen off the bus). No later configuration could be measured, and the other ranks wait in NCCL for this
// one. So the job ends where the error is met, before destructors call CUDA and NCCL again. The configuration
// that ran is blamed, and `launch` continues in a new job.
#pragma once

#include <string>

namespace shardmark {

// Recognizes the error messages of CUDA and NVML.
bool tells_of_lost_gpu(const std::string& error);

// "rank 3 on node2 has lost GPU 3 (0000:17:00.0): CUDA error: ...; what to type".
std::string lost_gpu_line(int rank, const std::string& host, const std::string& gpu,
                          const std::string& error);

// Ends the job with kSystem and that line if the error reports a lost GPU, or if CUDA does when asked (cuBLAS
// and NCCL have their own messages for CUDA's errors). Otherwise it returns.
void end_job_if_gpu_is_lost(const std::string& error);

}  // namespace shardmark

// Host memory for messages of MPI.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

namespace shardmark {

// Page-aligned host memory, in huge pages from 2 MiB on. Throws OutOfMemory. The meter does not count it.
std::shared_ptr<char> host_memory(int64_t bytes);

// A zeroed tensor of shape [numel] in such memory. The meter counts it under its current use for as long as
// the tensor lives.
at::Tensor host_tensor(int64_t numel, at::ScalarType dtype);

}  // namespace shardmark

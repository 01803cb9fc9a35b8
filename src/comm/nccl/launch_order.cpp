// Decides whether NCCL can order kernels of several communicators, from versions and the environment
// variable.
#include "comm/nccl/launch_order.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>

#include "comm/nccl/check.h"

namespace shardmark {

using strategies::Serving;

namespace {

constexpr const char* kVariable = "NCCL_LAUNCH_ORDER_IMPLICIT";
constexpr int kFirstNccl = 22600;  // 2.26.0
constexpr int kFirstCuda = 12030;  // 12.3

// The older of the CUDA versions of runtime and driver. Without a driver, the runtime's.
int cuda_version() {
  int runtime = 0, driver = 0;
  GPU_CHECK(cudaRuntimeGetVersion(&runtime));
  GPU_CHECK(cudaDriverGetVersion(&driver));
  return driver == 0 ? runtime : std::min(runtime, driver);
}

Serving find_serving() {
  int version = 0;
  GPU_CHECK(ncclGetVersion(&version));
  const Serving serving = nccl_serving(version, cuda_version(), std::getenv(kVariable));
  if (serving == Serving::launch_order) setenv(kVariable, "1", /*overwrite=*/0);
  return serving;
}

}  // namespace

Serving nccl_serving(int nccl_version, int cuda_version, const char* variable) {
  const bool refused = variable != nullptr && std::strtoll(variable, nullptr, 0) == 0;  // parsed as NCCL does
  const bool is_new = nccl_version >= kFirstNccl && cuda_version >= kFirstCuda;
  return is_new && !refused ? Serving::launch_order : Serving::serial;
}

Serving nccl_serving() {
  static const Serving serving = find_serving();
  return serving;
}

}  // namespace shardmark

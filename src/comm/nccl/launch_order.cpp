// Which order, by version and variable.
#include "comm/nccl/launch_order.h"

#include <cstdlib>

#include "comm/nccl/check.h"

namespace shardmark {
namespace {

constexpr const char* kVariable = "NCCL_LAUNCH_ORDER_IMPLICIT";
constexpr int kFirstVersion = 22600;  // 2.26.0

LaunchOrder find_order() {
  int version = 0;
  GPU_CHECK(ncclGetVersion(&version));
  const LaunchOrder order = launch_order(version, std::getenv(kVariable));
  if (order == LaunchOrder::of_nccl) setenv(kVariable, "1", /*overwrite=*/0);
  return order;
}

}  // namespace

LaunchOrder launch_order(int nccl_version, const char* variable) {
  const bool refused = variable != nullptr && std::strtoll(variable, nullptr, 0) == 0;  // as NCCL reads it
  return nccl_version >= kFirstVersion && !refused ? LaunchOrder::of_nccl : LaunchOrder::one_stream;
}

LaunchOrder launch_order() {
  static const LaunchOrder order = find_order();
  return order;
}

}  // namespace shardmark

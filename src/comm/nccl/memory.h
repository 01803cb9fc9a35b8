// Owns an ncclComm_t, and allocates device memory that can be registered with communicators
// (registrations.h).
#pragma once

#include <ATen/ATen.h>
#include <nccl.h>

#include <memory>

#include "comm/communicator.h"
#include "comm/host_group.h"
#include "comm/nccl/registrations.h"

namespace shardmark {

// Owns a communicator.
class NcclComm final : public Registrar {
 public:
  NcclComm(const HostGroup& group, at::Device device);  // collective over the group
  // Splits off a communicator of the ranks with the same color, ordered by key. This is faster than making
  // one from nothing, because the ranks are already connected. A rank with color < 0 takes no part and gets
  // nullptr. Collective; nothing may be in flight.
  std::shared_ptr<NcclComm> split(int color, int key, SplitUse use) const;
  ~NcclComm() override;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const { return comm_; }

  std::string enroll(void* data, size_t bytes, void** handle) override;
  void dismiss(void* handle) noexcept override;

 private:
  explicit NcclComm(ncclComm_t comm) : comm_(comm) {}
  ncclComm_t comm_ = nullptr;
};

// The registrations of all memory from nccl_tensor in this process.
Registrations& registrations();

// Returns a tensor of shape [numel], zeroed on the current stream. The meter counts it under its current use.
at::Tensor nccl_tensor(int64_t numel, at::ScalarType dtype, at::Device device);

}  // namespace shardmark

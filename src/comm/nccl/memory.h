// An ncclComm_t, and device memory that it knows: a collective on registered memory moves without a staging
// copy.
#pragma once

#include <ATen/ATen.h>
#include <nccl.h>

#include <memory>

#include "comm/host_group.h"

namespace shardmark {

// Owns a communicator. Registered memory shares it: deregistering needs it alive.
class NcclComm {
 public:
  NcclComm(const HostGroup& group, at::Device device);  // collective
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const;  // SystemError after an abort
  bool is_alive() const { return comm_ != nullptr; }
  void abort() noexcept;  // ends what is in flight, on this rank alone

 private:
  ncclComm_t comm_ = nullptr;
};

// [numel], zeroed in the order of the current stream. Counted by the meter under its current use.
at::Tensor nccl_tensor(const std::shared_ptr<NcclComm>& comm, int64_t numel, at::ScalarType dtype,
                       at::Device device);

}  // namespace shardmark

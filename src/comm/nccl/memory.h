// An ncclComm_t, and device memory that communicators can be told of (registrations.h).
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
  NcclComm(const HostGroup& group, at::Device device);  // collective
  // Its ranks of one colour, by key, as their own communicator: sooner there than one from nothing, for the
  // ranks know each other. color < 0: takes no part, gets nullptr. Collective; nothing may be in flight.
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

// Of all memory from nccl_tensor in this process.
Registrations& registrations();

// [numel], zeroed in the order of the current stream. Counted by the meter under its current use.
at::Tensor nccl_tensor(int64_t numel, at::ScalarType dtype, at::Device device);

}  // namespace shardmark

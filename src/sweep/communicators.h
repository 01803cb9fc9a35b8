// The communicators of a sweep's points. There is one at a time: memory that NCCL or MPI allocated for one
// point is freed before the next begins, so that the memory of a point does not depend on the order of
// points.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "sweep/sweep.h"

namespace shardmark {

class PointCommunicators {
 public:
  // A communicator over the first ranks of the world.
  struct Current {
    int64_t ranks;
    std::string transport;
    HostGroup group;
    std::unique_ptr<Communicator> comm;  // nullptr on ranks that do not take part
  };

  // The arguments must outlive this object.
  PointCommunicators(const HostGroup& world, const RunOptions& options, MovedBy moved_by,
                     Heartbeat& heartbeat)
      : world_(world), options_(options), moved_by_(moved_by), heartbeat_(heartbeat) {}

  // Returns the current communicator if it fits and may have been used before. Otherwise the current one is
  // destroyed and a new one is split off a communicator of all ranks on which no operation has ever run. The
  // reference is valid until the next call. Collective over the world.
  Current& get(int64_t ranks, const std::string& transport, bool unused);

 private:
  void make(int64_t ranks, const std::string& transport);

  const HostGroup& world_;
  const RunOptions& options_;
  MovedBy moved_by_;
  Heartbeat& heartbeat_;
  std::unique_ptr<Communicator> whole_;  // of all ranks; only ever split
  std::optional<Current> current_;
};

}  // namespace shardmark

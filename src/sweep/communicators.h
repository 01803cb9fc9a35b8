// The communicators of a sweep's points, one at a time: what an earlier point made NCCL or MPI allocate is
// given back before the next begins, so that no order of points decides how much memory one has.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "sweep/sweep.h"

namespace shardmark {

class PointCommunicators {
 public:
  // The first ranks of the world.
  struct Current {
    int64_t ranks;
    std::string transport;
    HostGroup group;
    std::unique_ptr<Communicator> comm;  // nullptr on ranks that are left out
  };

  // What is given must outlive this.
  PointCommunicators(const HostGroup& world, const RunOptions& options, MovedBy moved_by,
                     Heartbeat& heartbeat)
      : world_(world), options_(options), moved_by_(moved_by), heartbeat_(heartbeat) {}

  // The one that there is, if it fits and may have been used before; else it ends and another is split off
  // one of the whole world, which no operation has ever used. Until the next call. Collective over the world.
  Current& get(int64_t ranks, const std::string& transport, bool unused);

 private:
  void make(int64_t ranks, const std::string& transport);

  const HostGroup& world_;
  const RunOptions& options_;
  MovedBy moved_by_;
  Heartbeat& heartbeat_;
  std::unique_ptr<Communicator> whole_;  // of all ranks
  std::optional<Current> current_;
};

}  // namespace shardmark

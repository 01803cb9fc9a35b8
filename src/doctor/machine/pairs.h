// Timed exchanges of bytes between ranks, over the transport that runs use; every pair of ranks within nodes
// and every pair of nodes, measured within a given time.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "comm/communicator.h"
#include "comm/watch/heartbeat.h"
#include "doctor/exchange.h"
#include "doctor/pair_test.h"

namespace shardmark::machine {

inline constexpr int64_t kSmallBytes = 8;

struct ExchangeOptions {
  std::string transport;
  at::Device device{at::kCPU};
  // The watchdog's notes: operations and waits for other ranks are recorded here.
  Heartbeat* heartbeat = nullptr;
};

// A communicator with buffers to send and receive. All ranks of the group call it together with the same
// number of bytes. A rank that rests exchanges with itself, because the tags of messages follow from the
// number of earlier operations.
class Exchanger {
 public:
  Exchanger(const HostGroup& group, const ExchangeOptions& options);
  // Sends and receives at the same time, at most doctor::kExchangeBytes each. Returns seconds.
  double exchange_s(int from, int to, int64_t bytes);

  // From now on messages hold the pattern of this rank (comm/verification.h).
  void send_pattern_of(int rank);
  // Makes one large exchange with a rank, which calls it, too, and returns how many elements of its pattern
  // arrived with another value.
  int64_t num_wrong(int other);

 private:
  std::unique_ptr<Communicator> comm_;
  at::Tensor out_, in_;  // received, sent
};

// A barrier. The watchdog calls the wait and what follows it by the name `stage`.
void meet(const HostGroup& world, Heartbeat* heartbeat, const char* stage);

// Runs `body` on rank 0; until it returns, all ranks take part in the exchanges that it asks for
// (doctor/exchange.h). So one rank decides what is measured next, for all ranks. Collective.
void lead_exchanges(const HostGroup& world, const ExchangeOptions& options,
                    const std::function<void(doctor::Exchange)>& body);

struct PairOptions : ExchangeOptions {
  double budget_s = 25;  // for the measurements; making connections takes longer
};

// The pairs of a round are disjoint and exchange at the same time. Across nodes, ranks with the same local
// rank form the pairs. The result is on rank 0. Collective.
doctor::PairTest measure_pairs(const HostGroup& world, const PairOptions& options);

}  // namespace shardmark::machine

// Exchanges of bytes between ranks, over the transport that runs use, timed.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "comm/communicator.h"
#include "comm/watch/heartbeat.h"
#include "doctor/exchange.h"

namespace shardmark::machine {

inline constexpr int64_t kSmallBytes = 8;

struct ExchangeOptions {
  std::string transport;
  at::Device device{at::kCPU};
  Heartbeat* heartbeat = nullptr;  // where operations and meetings are noted, for a watchdog
};

// A communicator and what it sends and receives. All ranks of the group call it alike, with as many bytes:
// one that rests exchanges with itself, because the tags of messages follow from what went before.
class Exchanger {
 public:
  Exchanger(const HostGroup& group, const ExchangeOptions& options);
  double exchange_s(int from, int to, int64_t bytes);  // at most doctor::kExchangeBytes, both ways at once

 private:
  std::unique_ptr<Communicator> comm_;
  at::Tensor out_, in_;
};

// A barrier, and what follows it, as the watchdog calls it.
void meet(const HostGroup& world, Heartbeat* heartbeat, const char* stage);

// Runs body on rank 0, whose exchanges (doctor/exchange.h) all ranks take part in until it returns: what is
// measured next is decided by one rank, and is the same for all. Collective.
void lead_exchanges(const HostGroup& world, const ExchangeOptions& options,
                    const std::function<void(doctor::Exchange)>& body);

}  // namespace shardmark::machine

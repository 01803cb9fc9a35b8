// Rank 0 announces who sends to whom, and all ranks do it.
#include "doctor/machine/exchange.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "device/device.h"
#include "device/timeline.h"

namespace shardmark::machine {
namespace {

// A repeat consists of as many exchanges as take this long together, so that neither the clock's resolution
// nor the barrier before it matters.
constexpr double kRepeatS = 0.01;
constexpr int kMostTimes = 8;

// Makes one exchange to connect, one to find out how many fit into a repeat, and then the repeats. Returns
// the seconds of one exchange for each repeat.
std::vector<double> repeat(const HostGroup& world, const ExchangeOptions& options, Exchanger& exchanger,
                           const doctor::Receivers& receivers, int64_t bytes, int repeats) {
  const int rank = world.rank();
  const bool rests = receivers[static_cast<size_t>(rank)] == doctor::kRests;
  const int to = rests ? rank : receivers[static_cast<size_t>(rank)];
  const int from =
      rests ? rank
            : static_cast<int>(std::find(receivers.begin(), receivers.end(), rank) - receivers.begin());
  exchanger.exchange_s(from, to, kSmallBytes);
  const double longest_s = world.max(exchanger.exchange_s(from, to, bytes));
  const int times = std::clamp(static_cast<int>(kRepeatS / longest_s), 1, kMostTimes);
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    meet(world, options.heartbeat, "an exchange of many");
    double sum = 0;
    for (int j = 0; j < times; ++j) sum += exchanger.exchange_s(from, to, bytes);
    seconds.push_back(rests ? NAN : sum / times);
  }
  return seconds;
}

}  // namespace

Exchanger::Exchanger(const HostGroup& group, const ExchangeOptions& options)
    : comm_(make_communicator(options.transport, group, options.device)),
      out_(comm_->allocate(doctor::kExchangeBytes / 4, at::kFloat)),
      in_(comm_->allocate(doctor::kExchangeBytes / 4, at::kFloat)) {
  comm_->set_heartbeat(options.heartbeat);
}

double Exchanger::exchange_s(int from, int to, int64_t bytes) {
  const double begin = now_s();
  comm_->send_recv(out_.narrow(0, 0, bytes / 4), from, in_.narrow(0, 0, bytes / 4), to).wait();
  synchronize(comm_->device());
  return now_s() - begin;
}

void meet(const HostGroup& world, Heartbeat* heartbeat, const char* stage) {
  if (heartbeat != nullptr) heartbeat->meet(stage);
  world.barrier();
  if (heartbeat != nullptr) heartbeat->stage(stage);
}

void lead_exchanges(const HostGroup& world, const ExchangeOptions& options,
                    const std::function<void(doctor::Exchange)>& body) {
  Exchanger exchanger(world, options);
  const auto next = [&](const std::string& text) {
    if (options.heartbeat != nullptr) options.heartbeat->meet("the next exchange");
    return world.broadcast(text, 0);
  };
  const auto take_part = [&](const doctor::Receivers& to, int64_t bytes, int repeats) {
    return world.gather(repeat(world, options, exchanger, to, bytes, repeats));
  };
  if (world.rank() == 0) {
    body({doctor::kExchangeBytes, [&](const doctor::Receivers& to, int64_t bytes, int repeats) {
            next(nlohmann::json{{"to", to}, {"bytes", bytes}, {"repeats", repeats}}.dump());
            const auto all = take_part(to, bytes, repeats);
            doctor::Times times;
            for (size_t at = 0; at < all.size(); at += static_cast<size_t>(repeats))
              times.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                                 all.begin() + static_cast<std::ptrdiff_t>(at) + repeats);
            return times;
          }});
    next("");
    return;
  }
  for (std::string text = next(""); !text.empty(); text = next("")) {
    const auto asked = nlohmann::json::parse(text);
    take_part(asked["to"].get<doctor::Receivers>(), asked["bytes"].get<int64_t>(),
              asked["repeats"].get<int>());
  }
}

}  // namespace shardmark::machine

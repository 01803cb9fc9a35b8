// Rank 0 announces who sends to whom, and all ranks do it; the rounds of a test of pairs.
#include "doctor/machine/pairs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "comm/verification.h"
#include "device/device.h"
#include "device/timeline.h"

namespace shardmark::machine {
namespace {

// A repeat consists of as many exchanges as take this long together, so that neither the clock's resolution
// nor the barrier before it matters.
constexpr double kRepeatS = 0.01;
constexpr int kMostTimes = 8;
constexpr int64_t kRound = 0;  // of the pattern that messages hold

// Makes one exchange to connect, one to find out how many fit into a repeat, and then the repeats. Returns
// the seconds of one exchange for each repeat.
std::vector<double> repeat(const HostGroup& world, const ExchangeOptions& options, Exchanger& exchanger,
                           const doctor::Receivers& receivers, int64_t bytes, int repeats) {
  const int rank = world.rank();
  // A rank that rests exchanges with itself, because all ranks must start the same operations. Its times do
  // not count.
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

void Exchanger::send_pattern_of(int rank) { in_.copy_(pattern(rank, in_.numel(), at::kFloat, kRound)); }

int64_t Exchanger::num_wrong(int other) {
  constexpr int kNoValue = 99;
  out_.fill_(kNoValue);
  exchange_s(other, other, doctor::kExchangeBytes);
  const at::Tensor right = pattern(other, out_.numel(), at::kFloat, kRound).to(out_.device());
  return item<int64_t>(out_.ne(right).sum());
}

void meet(const HostGroup& world, Heartbeat* heartbeat, const char* stage) {
  if (heartbeat != nullptr) heartbeat->meet(stage);
  world.barrier();
  if (heartbeat != nullptr) heartbeat->stage(stage);
}

// Rank 0 runs `body`, which decides after every exchange which one comes next. For each exchange it
// broadcasts who sends to whom, with which size and how often, and gathers the times. The other ranks wait
// for the next broadcast and take part. An empty text ends the loop of the other ranks.
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

namespace {

constexpr int kSmallTimes = 10;

// The ranks that meet each other in a phase: those of one node, or those with the same local rank on all
// nodes.
class Ring {
 public:
  Ring(HostGroup group, const PairOptions& options) : group_(std::move(group)), exchanger_(group_, options) {
    exchanger_.send_pattern_of(group_.rank());
  }

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  // The times of one small and one large exchange with this round's partner; NaN if there is none. A rank
  // that rests exchanges with itself, because operations of a communicator must have the same count on all
  // ranks.
  doctor::Meeting meet(int round, int repeats) {
    constexpr doctor::Meeting kRested{NAN, NAN};
    if (round >= doctor::num_rounds(size())) return kRested;
    const int partner = doctor::partner(size(), round, rank());
    const int other = partner < 0 ? rank() : partner;
    exchange_s(other, kSmallBytes);  // connects
    const doctor::Meeting met{typical_s(other, kSmallBytes, kSmallTimes),
                              typical_s(other, doctor::kExchangeBytes, repeats),
                              static_cast<double>(exchanger_.num_wrong(other))};
    return partner < 0 ? kRested : met;
  }

 private:
  double exchange_s(int other, int64_t bytes) { return exchanger_.exchange_s(other, other, bytes); }
  // The median over `times` exchanges. One exchange before them is not counted, because the partner may still
  // be on its way.
  double typical_s(int other, int64_t bytes, int times) {
    exchange_s(other, bytes);
    std::vector<double> all;
    for (int i = 0; i < times; ++i) all.push_back(exchange_s(other, bytes));
    return median(all);
  }

  HostGroup group_;
  Exchanger exchanger_;
};

// The seconds that a round takes without large messages, and those that each of them adds, for the slowest
// pair of the first round. That round has one large message, after one that does not count, and both are
// taken away from its time. The exchange that num_wrong() compares belongs to every round, however many
// large messages the round has, so it stays in the first number.
std::pair<double, double> costs(const HostGroup& world, Ring& ring) {
  world.barrier();
  const double begin = now_s();
  const doctor::Meeting met = ring.meet(0, 1);
  const double whole = now_s() - begin;
  const double large = world.max(std::isnan(met.large_s) ? 0.0 : met.large_s);
  return {std::max(0.0, world.max(whole) - 2 * large), large};
}

// Collects what all ranks have measured in one gather of numbers: for each rank its group, its number there
// and the size of the group, and then three numbers for each round. All ranks send equally many.
std::vector<doctor::Witness> gather(const HostGroup& world, const Ring& ring, int group,
                                    const std::vector<doctor::Meeting>& meetings) {
  std::vector<double> own = {static_cast<double>(group), static_cast<double>(ring.rank()),
                             static_cast<double>(ring.size())};
  for (const doctor::Meeting& met : meetings) own.insert(own.end(), {met.message_s, met.large_s, met.wrong});
  const std::vector<double> all = world.gather(own);
  std::vector<doctor::Witness> witnesses;
  for (size_t at = 0; at < all.size(); at += own.size()) {
    doctor::Witness one{
        static_cast<int>(all[at]), static_cast<int>(all[at + 1]), static_cast<int>(all[at + 2]), {}};
    for (size_t i = at + 3; i < at + own.size(); i += 3)
      one.meetings.push_back({all[i], all[i + 1], all[i + 2]});
    witnesses.push_back(std::move(one));
  }
  return witnesses;
}

void keep_faster(doctor::Meeting& kept, const doctor::Meeting& met) {
  kept.message_s = std::fmin(kept.message_s, met.message_s);  // fmin ignores a NaN
  kept.large_s = std::fmin(kept.large_s, met.large_s);
  kept.wrong += met.wrong;
}

// The ranks with the same `group` meet each other; all groups do so at the same time. The number of rounds
// and the plan are those of the largest group and the slowest pair, so that all ranks pass through the same
// barriers. Ranks of smaller groups rest in the rounds that their group does not have.
doctor::Phase run_phase(const HostGroup& world, int group, const PairOptions& options, double budget_s) {
  doctor::Phase phase;
  Ring ring(world.split(group, world.rank()), options);
  phase.num_rounds = static_cast<int>(world.max(static_cast<int64_t>(doctor::num_rounds(ring.size()))));
  if (phase.num_rounds > 0) {
    const auto [setup_s, exchange_s] = costs(world, ring);
    phase.plan = doctor::plan_meetings(phase.num_rounds, setup_s, exchange_s, budget_s);
  }
  std::vector<doctor::Meeting> best(phase.plan.rounds.size(), {NAN, NAN});
  for (int pass = 0; pass < phase.plan.passes; ++pass)
    for (size_t i = 0; i < best.size(); ++i) {
      meet(world, options.heartbeat, "a round of pairs");
      keep_faster(best[i], ring.meet(phase.plan.rounds[i], phase.plan.repeats));
    }
  phase.groups =
      doctor::groups_from(gather(world, ring, group, best), phase.plan.rounds, doctor::kExchangeBytes);
  return phase;
}

}  // namespace

doctor::PairTest measure_pairs(const HostGroup& world, const PairOptions& options) {
  const double begin = now_s();
  const int first = world.first_rank_on_node();
  const int local = world.split(first, world.rank()).rank();
  const int most_local = static_cast<int>(world.max(static_cast<int64_t>(local)));
  const bool several_nodes = world.max(static_cast<int64_t>(first)) > 0;
  // A node has fewer pairs of ranks than there are pairs of nodes, so it gets the smaller share.
  const double share = several_nodes && most_local > 0 ? 0.3 : 1;
  doctor::PairTest test;
  test.large_bytes = doctor::kExchangeBytes;
  test.transport = options.transport;
  test.in_nodes = run_phase(world, first, options, share * options.budget_s);
  if (several_nodes)
    test.across = run_phase(world, local, options, (most_local > 0 ? 1 - share : 1) * options.budget_s);
  test.seconds = now_s() - begin;
  return test;
}

}  // namespace shardmark::machine

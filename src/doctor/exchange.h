// Exchanges that all ranks make at once, as bisection.h and halving.h ask for them; machine/exchange.h makes
// them, tests simulate them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardmark::doctor {

inline constexpr int64_t kExchangeBytes = 4 << 20;  // the most that a rank sends, and receives, at once

// A power of two below that with which an exchange at this speed (bytes/s) takes 0.1 s at most, so that tests
// of slow links end; 64 KiB or more.
int64_t exchange_bytes(double speed);

// Who is compared with each other: nodes; where there is one node, its ranks.
struct Member {
  std::string name;
  std::vector<int> ranks;  // by local number
};
using Members = std::vector<Member>;
using Group = std::vector<int>;  // of indices of members

// To which rank each rank sends; kRests: it sends and receives nothing. Each rank receives from one at most.
using Receivers = std::vector<int>;
inline constexpr int kRests = -1;

// Seconds of a rank's exchange, [rank][repeat]; a NaN of those that rest.
using Times = std::vector<std::vector<double>>;
struct Exchange {
  int64_t bytes = kExchangeBytes;  // that a rank sends
  std::function<Times(const Receivers& to, int64_t bytes, int repeats)> run = {};
  Times operator()(const Receivers& to, int repeats) const { return run(to, bytes, repeats); }
};

// How many ranks of each member take part: as many as each has, so that links are loaded alike.
int num_rails(const Members& members);
Receivers nobody(const Members& members);
// Each rank of the one sends to the rank of its local number of the other.
void add_sending(Receivers& to, const Members& members, int from, int other);
// Of each repeat, the rank of the group that took longest.
std::vector<double> slowest(const Times& times, const Members& members, const Group& group);

// "node1", "node1 and node2", "node1 .. node8" where they follow each other, "node1, node3 and 5 more"
std::string group_text(const Members& members, const Group& group);

}  // namespace shardmark::doctor

// Exchanges that all ranks make at once, for bisection.h and halving.h. machine/pairs.h performs them;
// tests simulate them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardmark::doctor {

// The most that a rank sends, and receives, in one exchange.
inline constexpr int64_t kExchangeBytes = 4 << 20;

// The size with which an exchange at this speed (bytes/s) takes at most 0.1 s, so that tests of slow links
// end: kExchangeBytes, halved as often as needed, but at least 64 KiB.
int64_t exchange_bytes(double speed);

// What is compared with each other: nodes, or the ranks of the only node.
struct Member {
  std::string name;
  std::vector<int> ranks;  // by local rank
};
using Members = std::vector<Member>;
using Group = std::vector<int>;  // indices of members

// The rank to which each rank sends. kRests means that it sends and receives nothing. Each rank receives from
// one rank at most.
using Receivers = std::vector<int>;
inline constexpr int kRests = -1;

// Seconds of an exchange, [rank][repeat]; NaN for ranks that rest.
using Times = std::vector<std::vector<double>>;
struct Exchange {
  int64_t bytes = kExchangeBytes;  // that a rank sends
  std::function<Times(const Receivers& to, int64_t bytes, int repeats)> run = {};
  Times operator()(const Receivers& to, int repeats) const { return run(to, bytes, repeats); }
};

// The number of ranks of each member that take part: the smallest that any member has, so that links are
// loaded alike. The k-th ranks of all members form a rail.
int num_rails(const Members& members);
Receivers nobody(const Members& members);
// Each rank of member `from` sends to the rank of `other` with the same local rank.
void add_sending(Receivers& to, const Members& members, int from, int other);
// For each repeat, the time of the slowest rank of the group.
std::vector<double> slowest(const Times& times, const Members& members, const Group& group);

// "node1", "node1 and node2", "node1 .. node8" for consecutive ones, or "node1, node3 and 5 more".
std::string group_text(const Members& members, const Group& group);

}  // namespace shardmark::doctor

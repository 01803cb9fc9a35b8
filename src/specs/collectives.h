// The table of collectives, a row each: what ranks hold on the two sides of an operation, what it moves and
// how it is rated. Transports, counted traffic, cost models, verification, help and tests use the rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace shardmark::specs {

// In the order of the table; studies store the number.
enum class Collective {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send_recv,
  all_to_all_v
};
inline constexpr size_t kNumCollectives = 10;

// What a rank holds of the payload on one side. pair: as much as the rank at the other end, whoever it is.
enum class Holds { whole, shard, chunk_per_rank, pair };

// Of n ranks.
struct Factor {
  const char* formula = "";
  double (*of)(double n) = nullptr;
};

struct CollectiveRow {
  Collective what = Collective::all_reduce;
  std::string name;
  Holds in = Holds::whole, out = Holds::whole;
  enum class Root { none, sends, receives };
  Root root = Root::none;  // the root alone uses `in`, or `out`
  bool reduces = false;    // takes sum, average, min, max
  bool in_place = false;   // has an in-place form
  // Bytes that a rank sends, as the mean over n ranks, for a payload of 1 byte; a payload is the larger of a
  // rank's two sides. A broadcast passes the payload on n-1 times: (n-1)/n a rank. Source: Patarasuk and
  // Yuan, JPDC 69(2), 2009.
  Factor sent;
  // busbw / algbw: bytes over the busiest link of a ring for a payload of 1 byte. Source: nccl-tests,
  // doc/PERFORMANCE.md and the getBw functions of its sources.
  Factor busbw;
  // How often a ring goes round, in n-1 steps each; 0: one step, between two ranks.
  double rounds = 1;
  bool has_tree = false;  // two binary trees may be faster than a ring
  std::string description;
  // Whose messages are most like its own, first the most: what stands for it where it was not measured.
  std::vector<Collective> similar;
  // Operations that together do the same, each at the same size: it should not take longer than they do.
  // Source: Traff et al., self-consistent MPI performance guidelines, IEEE TPDS 21(5), 2010.
  std::vector<std::vector<Collective>> guidelines;
  bool has_parts =
      false;  // parts may differ in length (parts.h); a payload is the busiest rank's larger side

  bool is_rooted() const { return root != Root::none; }
  // No rank can be done before the last one has begun.
  bool waits_for_all() const { return !is_rooted() && in != Holds::pair; }
  // The larger side is cut into one part per rank, so that it holds at least one element for each.
  bool is_cut() const { return in == Holds::chunk_per_rank || in == Holds::shard || out == Holds::shard; }
};

const std::array<CollectiveRow, kNumCollectives>& collectives();
const CollectiveRow& collective(Collective what);
const CollectiveRow& collective(const std::string& name);       // UsageError lists the known ones
const CollectiveRow* find_collective(const std::string& name);  // nullptr: unknown
std::vector<std::string> collective_names();

// `sent`, and 0 on one rank.
double ring_factor(Collective what, int64_t ranks);

}  // namespace shardmark::specs

// The table of collectives: for each, what ranks hold before and after it, what it moves, and how its
// bandwidth is computed. Transports, traffic counts, cost models, verification, help and tests all use its
// rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace shardmark::specs {

// The order is that of the table. Studies store the numbers, so they must not change.
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

// How much of the payload a rank holds as input or output. pair: as much as its peer, whichever rank that is.
enum class Holds { whole, shard, chunk_per_rank, pair };

// A factor that depends on the number of ranks n.
struct Factor {
  const char* formula = "";
  double (*of)(double n) = nullptr;
};

struct CollectiveRow {
  Collective what = Collective::all_reduce;
  std::string name;
  Holds in = Holds::whole, out = Holds::whole;
  enum class Root { none, sends, receives };
  Root root = Root::none;  // whether only the root uses `in` (sends) or `out` (receives)
  bool reduces = false;    // takes a reduction operator: sum, average, min, max
  bool in_place = false;   // can be done in place
  // The bytes that a rank sends per byte of payload, as the mean over n ranks. The payload is the larger of a
  // rank's input and output. A broadcast, for example, passes the payload on n-1 times, which is (n-1)/n per
  // rank. Source: Patarasuk and Yuan, JPDC 69(2), 2009.
  Factor sent;
  // busbw / algbw: the bytes on the busiest link of a ring per byte of payload. Source: nccl-tests,
  // doc/PERFORMANCE.md and the getBw functions of its sources.
  Factor busbw;
  // How often data goes around a ring, in n-1 steps each time. 0: a single step between two ranks.
  double rounds = 1;
  bool has_tree = false;  // a double binary tree may be faster than a ring
  std::string description;
  // The collectives with the most similar messages, the most similar first. They stand in for one that was
  // not measured.
  std::vector<Collective> similar;
  // Sequences of collectives that do the same as this one, at the same size. It should not take longer than
  // any of them. Source: Traff et al., self-consistent MPI performance guidelines, IEEE TPDS 21(5), 2010.
  std::vector<std::vector<Collective>> guidelines;
  // Whether parts may differ in length (parts.h). The payload is then the larger side of the busiest rank.
  bool has_parts = false;
  // dispatch and combine: tokens of a mixture of experts are copied or summed around the collective `what`.
  bool moves_tokens = false;

  bool is_rooted() const { return root != Root::none; }
  // Whether no rank can finish before the last rank has begun.
  bool waits_for_all() const { return !is_rooted() && in != Holds::pair; }
  // Whether the larger side is divided into one part per rank, so that it has at least one element for each.
  bool is_cut() const { return in == Holds::chunk_per_rank || in == Holds::shard || out == Holds::shard; }
};

const std::array<CollectiveRow, kNumCollectives>& collectives();
const CollectiveRow& collective(Collective what);
const CollectiveRow& collective(const std::string& name);  // throws UsageError, which lists the known ones
const CollectiveRow* find_collective(const std::string& name);  // nullptr if unknown
std::vector<std::string> collective_names();

// What a point may measure: the collectives, then dispatch and combine, which transports do not know. They
// are made of gathers of rows, a sum over rows, and an all_to_all_v (specs/tokens.h).
const std::vector<CollectiveRow>& operations();
const CollectiveRow& operation(const std::string& name);  // throws UsageError, which lists the known ones
const CollectiveRow* find_operation(const std::string& name);  // nullptr if unknown
std::vector<std::string> operation_names();

// `sent` for this number of ranks, and 0 for one rank.
double ring_factor(Collective what, int64_t ranks);

}  // namespace shardmark::specs

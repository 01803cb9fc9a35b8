// The tokens of a mixture of experts that travel to the ranks that have their experts (dispatch), and the
// experts' outputs that travel back (combine). Every rank has equally many experts, in the order of ranks,
// and equally many tokens, which all ranks route alike; so the sizes of all parts follow from one rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/choice.h"
#include "specs/routing.h"

namespace shardmark::specs {

// How often a token travels that goes to several experts. copy: once for each. rank: once to each rank that
// has some of them, which then copies it, and sums its experts' outputs before they travel back. node: once
// to each node, and there once to each rank: to the rank of the node with the same number there as the
// sender, which sends it on to the others, and sums on the way back.
enum class OncePer { copy, rank, node };

// parts experts(...) of dispatch and combine, with its options.
struct TokenExchange {
  explicit TokenExchange(const Choice& parts);  // throws UsageError if the options contradict each other

  int64_t width;    // elements of a token
  int64_t experts;  // of all ranks together
  int64_t top_k;    // different experts of each token
  Choice routing;   // a rule (routing.h)
  OncePer once_per;
};
const OptionTable& token_exchange_options();

// Why this number of ranks, with so many elements of tokens each, cannot exchange them; empty if they can.
std::string exchange_impossible(const TokenExchange& exchange, int64_t ranks, int64_t elements);

// The rows that each rank of a group sends to each in one all_to_all_v of a dispatch, and gets back in that
// of a combine.
struct TokenRows {
  // The token of each row, among those that the sender has. Rows are in the order of receivers.
  std::vector<int64_t> token;
  // What the row counts in the sum that a combine makes of a token's rows: for each of the row's copies 1/8
  // or 1/4, by turns. With at most 64 copies of a token, all sums of integers up to 2 are exact in every
  // type.
  std::vector<double> weight;
  std::vector<int64_t> count;  // rows for each receiver
};

// The rows for each rank: those that a rank sends to all, if it sends them at once and not by nodes.
TokenRows rows_to_ranks(const TokenExchange& exchange, int64_t ranks, int64_t tokens);

// The exchanges of a dispatch, one after the other: one among all ranks, or with OncePer::node one among the
// ranks with the same number on all nodes, whose rows all count 1, and one among those of node `node`, whose
// senders have the tokens of the first, in the order in which they came. A combine goes through them in
// reverse. `tokens`: of a rank. The first ranks_per_node ranks are on the first node, and so on.
std::vector<TokenRows> token_stages(const TokenExchange& exchange, int64_t ranks, int64_t ranks_per_node,
                                    int64_t node, int64_t tokens);

// The rows of a dispatch, all its exchanges together. Those of a combine go the other way.
struct TokenTraffic {
  // What the busiest rank has in the end, or sends to all experts, its own part included: what others call
  // logical, each row once for each rank or expert that gets it.
  int64_t logical = 0;
  // What the busiest rank exchanges with others, the larger of what it sends and receives: with all, with
  // those of its node, and with other nodes.
  int64_t exchanged = 0, within = 0, between = 0;
  double moved = 0;  // what a rank sends to others, as the mean over ranks
};
TokenTraffic token_traffic(const TokenExchange& exchange, int64_t ranks, int64_t ranks_per_node,
                           int64_t tokens);

// Tokens of a rank x experts that a rule routes: one after the other, each by a draw over all experts.
inline constexpr int64_t kMostDraws = 1 << 27;

// The rows that the tokens of a layer of a mixture are if each travels once to each of `parts` equal parts of
// the experts, by part, where a rule says which experts a token goes to. If the experts move from step to
// step, it is the first one.
std::vector<int64_t> rows_once_per(const Choice& routing, const RoutedTokens& of, int64_t layer,
                                   int64_t parts);

// The expected number of different parts (ranks, or nodes) that a token's experts are on, where all choices
// of top_k experts are equally likely and each part has as many experts.
double distinct_parts(int64_t parts, int64_t experts, int64_t top_k);

}  // namespace shardmark::specs

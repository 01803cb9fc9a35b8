// Which rows go where follows from the experts of tokens alone: expert e is on rank e / (experts / ranks).
#include "specs/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "specs/models/parameters.h"

namespace shardmark::specs {
namespace {

constexpr int64_t kMostExperts = 4096;
constexpr int64_t kMostCopies = 64;

OncePer once_per_of(const std::string& word) {
  return word == "copy" ? OncePer::copy : word == "rank" ? OncePer::rank : OncePer::node;
}

// A copy of a token for one expert.
struct Copy {
  int64_t expert, token;
  double weight;
};

std::vector<Copy> make_copies(const TokenExchange& exchange, int64_t tokens) {
  const std::vector<int64_t> experts =
      experts_of_tokens(exchange.routing, {exchange.experts, exchange.top_k, tokens}, /*layer=*/0);
  std::vector<Copy> copies;
  copies.reserve(experts.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    const int64_t token = static_cast<int64_t>(i) / exchange.top_k;
    copies.push_back({experts[i], token, (static_cast<int64_t>(i) + token) % 2 == 0 ? 0.125 : 0.25});
  }
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Copy& a, const Copy& b) { return a.expert < b.expert; });
  return copies;
}

// All copies of a rank's tokens, by expert, and for each expert in the order of tokens. The last ones are
// kept: plans and reports ask for the same tokens on other ranks, one point after the other.
std::shared_ptr<const std::vector<Copy>> copies_of(const TokenExchange& exchange, int64_t tokens) {
  static std::mutex mutex;
  static std::string kept_for;
  static std::shared_ptr<const std::vector<Copy>> kept;
  const std::string key =
      fmt::format("{} {} {} {}", to_text(exchange.routing), exchange.experts, exchange.top_k, tokens);
  const std::lock_guard lock(mutex);
  if (kept_for != key) {
    kept = std::make_shared<const std::vector<Copy>>(make_copies(exchange, tokens));
    kept_for = key;
  }
  return kept;
}

}  // namespace

TokenExchange::TokenExchange(const Choice& parts)
    : width(integer(parts.options, "width")),
      experts(integer(parts.options, "experts")),
      top_k(integer(parts.options, "top_k")),
      routing(choice_from_text(parts.options.at("routing").get<std::string>())),
      once_per(once_per_of(parts.options.at("once_per").get<std::string>())) {
  if (top_k > experts)
    throw UsageError(
        fmt::format("parts experts: a token goes to top_k {} different experts, of {}", top_k, experts));
  if (is_learned(routing))
    throw UsageError(
        "parts experts: a collective has no router that learns; take routing balanced, zipf or hot");
  if (moved_in_a_step(routing) > 0)
    throw UsageError("parts experts: all operations of a point move the same tokens; leave out moves");
  expert_shares(routing, experts, top_k);
}

const OptionTable& token_exchange_options() {
  static const OptionTable options = {
      {"width", OptionType::integer, 7168, "elements of a token", {}, 1, 1 << 20},
      {"experts", OptionType::integer, 256, "of all ranks together", {}, 1, kMostExperts},
      {"top_k", OptionType::integer, 8, "experts of a token", {}, 1, kMostCopies},
      {.key = "routing",
       .type = OptionType::choice,
       .default_value = "balanced",
       .description = "which experts a token goes to, by a rule",
       .kind = routing_kind},
      {"once_per",
       OptionType::text,
       "copy",
       "copy: a token travels to each of its experts; rank: once to each rank that has some; node: once to "
       "each "
       "node, and there to each rank",
       {"copy", "rank", "node"}}};
  return options;
}

std::string exchange_impossible(const TokenExchange& exchange, int64_t ranks, int64_t elements) {
  if (exchange.experts % ranks != 0)
    return fmt::format("parts experts: {} experts are not divisible by {} ranks; take a multiple of {}",
                       exchange.experts, ranks, ranks);
  const int64_t tokens = elements / exchange.width;
  if (tokens < 1)
    return fmt::format("parts experts: {} elements hold no token of width {}; take more bytes or less width",
                       elements, exchange.width);
  if (const int64_t most = kMostDraws / std::max(exchange.experts, exchange.top_k); tokens > most)
    return fmt::format(
        "parts experts: {} tokens of a rank are too many to route; take fewer bytes, at most {} tokens",
        tokens, most);
  return {};
}

namespace {

// The rows for `parts` equal parts of the experts: a row for each copy, or one for each token and part.
TokenRows rows_to_parts(const TokenExchange& exchange, bool is_once, int64_t parts, int64_t tokens) {
  TokenRows rows;
  rows.count.resize(static_cast<size_t>(parts));
  // The copies are sorted by expert. Experts are in the order of the parts, so that the copies are sorted
  // by part, too. If a token travels once to each part, its copies for one part have to follow each other.
  const std::shared_ptr<const std::vector<Copy>> by_expert = copies_of(exchange, tokens);
  const auto part_of = [&](const Copy& copy) { return copy.expert / (exchange.experts / parts); };
  std::vector<Copy> by_part;
  if (is_once) {
    by_part = *by_expert;
    std::stable_sort(by_part.begin(), by_part.end(), [&](const Copy& a, const Copy& b) {
      return std::pair(part_of(a), a.token) < std::pair(part_of(b), b.token);
    });
  }
  int64_t last_part = -1;
  for (const Copy& copy : is_once ? by_part : *by_expert) {
    const int64_t part = part_of(copy);
    // A further copy of the token for the same part: it travels with the row, whose weight in the sum
    // grows.
    if (is_once && part == last_part && rows.token.back() == copy.token) {
      rows.weight.back() += copy.weight;
      continue;
    }
    last_part = part;
    rows.token.push_back(copy.token);
    rows.weight.push_back(copy.weight);
    ++rows.count[static_cast<size_t>(part)];
  }
  return rows;
}

// The rows of `part`: first and one behind the last.
std::pair<size_t, size_t> rows_of_part(const TokenRows& rows, int64_t part) {
  const auto begin = std::accumulate(rows.count.begin(), rows.count.begin() + part, int64_t{0});
  return {static_cast<size_t>(begin), static_cast<size_t>(begin + rows.count[static_cast<size_t>(part)])};
}

// What a rank of `node` sends on to the ranks there, once for each. It has the tokens of one rank of each
// node.
TokenRows rows_within_node(const TokenRows& to_nodes, const TokenRows& to_ranks, int64_t ranks_per_node,
                           int64_t node, int64_t tokens) {
  // For each token, its place among those that come from one rank.
  std::vector<int64_t> place(static_cast<size_t>(tokens), -1);
  const auto [first, end] = rows_of_part(to_nodes, node);
  for (size_t row = first; row < end; ++row)
    place[static_cast<size_t>(to_nodes.token[row])] = static_cast<int64_t>(row - first);
  const auto nodes = std::ssize(to_nodes.count), from_one = static_cast<int64_t>(end - first);
  TokenRows rows;
  for (int64_t rank = node * ranks_per_node; rank < (node + 1) * ranks_per_node; ++rank) {
    const auto [begin, behind] = rows_of_part(to_ranks, rank);
    for (int64_t from = 0; from < nodes; ++from)
      for (size_t row = begin; row < behind; ++row) {
        // Every sender has routed its tokens alike, so that each of the `nodes` ranks has sent equally many
        // rows (from_one). They lie one sender after the other.
        rows.token.push_back(from * from_one + place[static_cast<size_t>(to_ranks.token[row])]);
        rows.weight.push_back(to_ranks.weight[row]);
      }
    rows.count.push_back(nodes * static_cast<int64_t>(behind - begin));
  }
  return rows;
}

// What each rank exchanges, in rows.
struct Exchanged {
  int64_t sent_within = 0, sent_between = 0, received_within = 0, received_between = 0;
};

}  // namespace

TokenRows rows_to_ranks(const TokenExchange& exchange, int64_t ranks, int64_t tokens) {
  return rows_to_parts(exchange, exchange.once_per != OncePer::copy, ranks, tokens);
}

std::vector<TokenRows> token_stages(const TokenExchange& exchange, int64_t ranks, int64_t ranks_per_node,
                                    int64_t node, int64_t tokens) {
  TokenRows to_ranks = rows_to_ranks(exchange, ranks, tokens);
  if (exchange.once_per != OncePer::node) return {std::move(to_ranks)};
  TokenRows to_nodes = rows_to_parts(exchange, /*is_once=*/true, ranks / ranks_per_node, tokens);
  std::fill(to_nodes.weight.begin(), to_nodes.weight.end(), 1.0);
  TokenRows within = rows_within_node(to_nodes, to_ranks, ranks_per_node, node, tokens);
  return {std::move(to_nodes), std::move(within)};
}

TokenTraffic token_traffic(const TokenExchange& exchange, int64_t ranks, int64_t ranks_per_node,
                           int64_t tokens) {
  const std::vector<int64_t> to_rank = rows_to_ranks(exchange, ranks, tokens).count;
  const int64_t nodes = (ranks + ranks_per_node - 1) / ranks_per_node;
  const bool by_node = exchange.once_per == OncePer::node;
  ENSURE(!by_node || ranks % ranks_per_node == 0, "tokens travel by nodes of equally many ranks");
  const std::vector<int64_t> to_node =
      by_node ? rows_to_parts(exchange, /*is_once=*/true, nodes, tokens).count : std::vector<int64_t>();
  const int64_t all_to_ranks = std::accumulate(to_rank.begin(), to_rank.end(), int64_t{0}),
                all_to_nodes = std::accumulate(to_node.begin(), to_node.end(), int64_t{0});
  TokenTraffic traffic;
  traffic.logical = all_to_ranks;
  for (int64_t node = 0; node < nodes; ++node) {
    const int64_t first = node * ranks_per_node, end = std::min(ranks, first + ranks_per_node),
                  here = end - first;
    const int64_t to_this = std::accumulate(to_rank.begin() + first, to_rank.begin() + end, int64_t{0});
    for (int64_t rank = first; rank < end; ++rank) {
      const int64_t own = to_rank[static_cast<size_t>(rank)];
      // All ranks send alike. A rank sends to its node what goes to the other ranks there, and to other
      // nodes the rest. It receives its own part from each rank of its node and of the others.
      Exchanged rows{to_this - own, all_to_ranks - to_this, (here - 1) * own, (ranks - here) * own};
      if (by_node) {
        // By nodes, a rank exchanges rows for nodes with the ranks of its number there. It then has the
        // rows of `nodes` senders, and hands them on to the other ranks of its node.
        const int64_t own_node = to_node[static_cast<size_t>(node)];
        rows = {nodes * (to_this - own), all_to_nodes - own_node, nodes * (here - 1) * own,
                (nodes - 1) * own_node};
      }
      traffic.logical = std::max(traffic.logical, ranks * own);
      traffic.within = std::max({traffic.within, rows.sent_within, rows.received_within});
      traffic.between = std::max({traffic.between, rows.sent_between, rows.received_between});
      traffic.exchanged = std::max({traffic.exchanged, rows.sent_within + rows.sent_between,
                                    rows.received_within + rows.received_between});
      traffic.moved += static_cast<double>(rows.sent_within + rows.sent_between) / static_cast<double>(ranks);
    }
  }
  return traffic;
}

// The results are kept, because every rank and every point of a plan asks for those of the same few layers.
std::vector<int64_t> rows_once_per(const Choice& routing, const RoutedTokens& of, int64_t layer,
                                   int64_t parts) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<int64_t>> kept;
  const std::string key =
      fmt::format("{} {} {} {} {} {}", to_text(routing), of.experts, of.top_k, of.tokens, layer, parts);
  const std::lock_guard lock(mutex);
  if (const auto found = kept.find(key); found != kept.end()) return found->second;
  const std::vector<int64_t> experts = experts_of_tokens(routing, of, layer);
  std::vector<int64_t> rows(static_cast<size_t>(parts)), last_token(rows.size(), -1);
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto part = static_cast<size_t>(experts[i] / (of.experts / parts));
    const int64_t token = static_cast<int64_t>(i) / of.top_k;
    if (std::exchange(last_token[part], token) != token) ++rows[part];
  }
  return kept[key] = rows;
}

// The probability that a part is missed is that of drawing all top_k different experts from those of the
// other parts: a product of shrinking fractions. The expected number of parts follows by linearity.
double distinct_parts(int64_t parts, int64_t experts, int64_t top_k) {
  double missed = 1;
  for (int64_t i = 0; i < top_k; ++i)
    missed *= static_cast<double>(std::max<int64_t>(0, experts - experts / parts - i)) /
              static_cast<double>(experts - i);
  return static_cast<double>(parts) * (1 - missed);
}

}  // namespace shardmark::specs

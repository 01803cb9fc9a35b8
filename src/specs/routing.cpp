// The rules' shares, and the assignment of tokens to experts by shares.
#include "specs/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "base/error.h"
#include "specs/models/parameters.h"
#include "specs/parts.h"

namespace shardmark::specs {
namespace {

// Gives every expert at most `most`. What is too much goes to the others, in proportion to their shares.
// Others may exceed the limit only then, so that this is repeated until nobody does.
void cap(std::vector<double>& shares, double most) {
  std::vector<bool> full(shares.size());
  for (bool changed = true; changed;) {
    changed = false;
    double left = 1, of_others = 0;
    for (size_t e = 0; e < shares.size(); ++e) full[e] ? left -= most : of_others += shares[e];
    for (size_t e = 0; e < shares.size(); ++e)
      if (!full[e]) shares[e] *= left / of_others;
    for (size_t e = 0; e < shares.size(); ++e)
      if (!full[e] && shares[e] > most) {
        shares[e] = most;
        full[e] = changed = true;
      }
  }
}

std::vector<double> balanced_shares(const Options&, int64_t experts, int64_t) {
  return std::vector<double>(static_cast<size_t>(experts), 1.0 / static_cast<double>(experts));
}

std::vector<double> zipf_shares(const Options& options, int64_t experts, int64_t top_k) {
  std::vector<double> shares;
  for (int64_t e = 1; e <= experts; ++e)
    shares.push_back(std::pow(static_cast<double>(e), -options.at("exponent").get<double>()));
  cap(shares, 1.0 / static_cast<double>(top_k));
  return shares;
}

std::vector<double> hot_shares(const Options& options, int64_t experts, int64_t top_k) {
  const int64_t hot = integer(options, "experts");
  const auto share = options.at("share").get<double>();
  if (hot >= experts)
    throw UsageError(
        fmt::format("routing hot: {} of {} experts are hot; at least one has to be left", hot, experts));
  const double each = share / static_cast<double>(hot);
  const double other = (1 - share) / static_cast<double>(experts - hot);
  constexpr double kRounding = 1e-12;
  if (const double most = 1.0 / static_cast<double>(top_k) + kRounding; each > most || other > most)
    throw UsageError(
        fmt::format("routing hot: a share of {:g} for {} of {} experts gives an expert {:.3g} of the copies, "
                    "and with top_k "
                    "{} it can get at most {:.3g}; take a share from {:.3g} to {:.3g}",
                    share, hot, experts, std::max(each, other), top_k, 1.0 / static_cast<double>(top_k),
                    std::max(0.0, 1 - static_cast<double>(experts - hot) / static_cast<double>(top_k)),
                    std::min(1.0, static_cast<double>(hot) / static_cast<double>(top_k))));
  std::vector<double> shares(static_cast<size_t>(experts), other);
  std::fill(shares.begin(), shares.begin() + hot, each);
  return shares;
}

}  // namespace

const std::map<std::string, RoutingSpec>& routing_specs() {
  static const std::map<std::string, RoutingSpec> table = {
      {"learned", {"the router's choice: the top_k experts with the largest logits"}},
      {"balanced", {"every expert gets equally many tokens", {}, balanced_shares}},
      {"zipf",
       {"expert i gets a share in proportion to 1 / i^exponent",
        {{"exponent", OptionType::number, 1.0, "0: equally many; larger: more for the first", {}, 0, 16}},
        zipf_shares}},
      {"hot",
       {"the first experts get a share of their own, and all others equally much of the rest",
        {{"experts",
          OptionType::integer,
          1,
          "how many: 1 for a hot expert, or as many as a rank has for a hot rank",
          {},
          1,
          4096},
         {"share",
          OptionType::number,
          0.5,
          "of the copies of tokens, for all of them together; 0: experts, or a rank, without any",
          {},
          0,
          1},
         {"moves", OptionType::boolean, false, "whether the next experts are hot in each step"}},
        hot_shares}},
  };
  return table;
}

const ChoiceKind& routing_kind() {
  static const ChoiceKind kind = [] {
    ChoiceKind all{"routing", {}, [](const std::string& name) -> const OptionTable& {
                     return routing_specs().at(name).options;
                   }};
    for (const auto& [name, spec] : routing_specs()) all.names.push_back(name);
    return all;
  }();
  return kind;
}

bool is_learned(const Choice& routing) { return routing.name == "learned"; }

int64_t moved_in_a_step(const Choice& routing) {
  return routing.name == "hot" && routing.options.at("moves").get<bool>()
             ? integer(routing.options, "experts")
             : 0;
}

std::vector<double> expert_shares(const Choice& routing, int64_t experts, int64_t top_k) {
  return routing_specs().at(routing.name).shares(routing.options, experts, top_k);
}

// Each token in turn draws top_k different experts with probabilities in proportion to what the experts still
// have to get: a systematic sample over the experts in a random order. An expert that has to get all tokens
// that are left is drawn for certain, so that the counts come out exactly. Which experts a token has together
// is left to chance, as it is for a router; how many ranks a token goes to depends on that. Source: Madow,
// Ann. Math. Stat. 20(3), 1949.
std::vector<int64_t> experts_of_tokens(const Choice& routing, const RoutedTokens& of, int64_t layer) {
  std::vector<int64_t> left = shared_out(of.tokens * of.top_k, expert_shares(routing, of.experts, of.top_k));
  std::vector<size_t> order(left.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(static_cast<uint64_t>(layer));
  std::vector<int64_t> experts;
  experts.reserve(static_cast<size_t>(of.tokens * of.top_k));
  for (int64_t tokens = of.tokens; tokens > 0; --tokens) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    // The experts lie one after the other on a line, each as long as its count, which is at most `tokens`.
    // Marks at equal distances of `tokens` so meet each at most once.
    auto next = static_cast<int64_t>(random() % static_cast<uint64_t>(tokens));
    int64_t end = 0;
    for (const size_t expert : order) {
      end += left[expert];
      if (next >= end) continue;
      experts.push_back(static_cast<int64_t>(expert));
      --left[expert];
      next += tokens;
    }
  }
  return experts;
}

}  // namespace shardmark::specs

// How the tokens of a mixture find their experts: as its router has learned, or by a rule. A measurement
// under a rule can be repeated, and says what uneven loads cost. The option `routing` of the mixtures; the
// router's weights are trained in any case, because they weight the experts' outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schema/choice.h"

namespace shardmark::specs {

struct RoutingSpec {
  std::string description;
  OptionTable options = {};
  // The share of the copies of tokens that each expert gets, [experts]. nullptr: the router decides.
  std::vector<double> (*shares)(const Options& options, int64_t experts, int64_t top_k) = nullptr;
};
const std::map<std::string, RoutingSpec>& routing_specs();
const ChoiceKind& routing_kind();

struct RoutedTokens {
  int64_t experts, top_k;  // a token goes to top_k different experts
  int64_t tokens;          // of a sample; all samples are routed alike
};

// Whether the router decides. All other functions are for rules.
bool is_learned(const Choice& routing);

// The share of each expert, at most 1 / top_k, because a token goes to different experts. Throws UsageError
// if that is not possible.
std::vector<double> expert_shares(const Choice& routing, int64_t experts, int64_t top_k);

// The experts of each token, [tokens, top_k]. An expert gets its share of the copies, rounded down or up.
// `layer` gives each layer other tokens for the same expert.
std::vector<int64_t> experts_of_tokens(const Choice& routing, const RoutedTokens& of, int64_t layer);
// By how many experts all choices move on from one step to the next, modulo the number of experts.
int64_t moved_in_a_step(const Choice& routing);

}  // namespace shardmark::specs

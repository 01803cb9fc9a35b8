// Tests the rules by which tokens are given to experts: their shares, and that the counts are exactly these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "specs/model_table.h"
#include "specs/routing.h"

namespace shardmark::specs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Choice routing_of(const std::string& text) {
  const Choice written = choice_from_text(text);
  return resolve(written, routing_kind().options(written.name), "routing");
}

// How many tokens each expert gets, after a check that a token goes to different experts.
std::vector<int64_t> counts_of(const std::string& text, const RoutedTokens& of, int64_t layer = 0) {
  const std::vector<int64_t> experts = experts_of_tokens(routing_of(text), of, layer);
  EXPECT_EQ(std::ssize(experts), of.tokens * of.top_k);
  std::vector<int64_t> counts(static_cast<size_t>(of.experts));
  for (int64_t token = 0; token < of.tokens; ++token) {
    std::set<int64_t> own;
    for (int64_t i = 0; i < of.top_k; ++i) own.insert(experts[static_cast<size_t>(token * of.top_k + i)]);
    EXPECT_EQ(std::ssize(own), of.top_k) << text << ", token " << token;
    for (const int64_t expert : own) ++counts.at(static_cast<size_t>(expert));
  }
  return counts;
}

TEST(Routing, GivesExpertsTheirShares) {
  EXPECT_THAT(counts_of("balanced", {4, 2, 10}), ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(counts_of("balanced", {4, 1, 10}), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(counts_of("hot", {5, 2, 100}), ElementsAre(100, 25, 25, 25, 25)) << "half of 200 copies";
  EXPECT_THAT(counts_of("hot(experts=2, share=0)", {4, 2, 10}), ElementsAre(0, 0, 10, 10));
  EXPECT_THAT(counts_of("hot(experts=2, share=1)", {4, 2, 10}), ElementsAre(10, 10, 0, 0));
  EXPECT_THAT(counts_of("hot(experts=2, share=0.8)", {6, 1, 50}), ElementsAre(20, 20, 3, 3, 2, 2));
  EXPECT_THAT(counts_of("zipf", {4, 1, 25}), ElementsAre(12, 6, 4, 3));
  EXPECT_THAT(counts_of("zipf(exponent=0)", {4, 1, 8}), ElementsAre(2, 2, 2, 2));
  // The first expert can get no more than all tokens, which is half of the copies, instead of 0.7 of them.
  EXPECT_THAT(counts_of("zipf(exponent=2)", {4, 2, 100}), ElementsAre(100, 59, 26, 15));
  EXPECT_THAT(counts_of("zipf(exponent=16)", {4, 2, 13}), ElementsAre(13, 13, 0, 0));
}

TEST(Routing, SumsToAllCopiesWhateverTheNumbers) {
  for (const std::string text : {"balanced", "zipf", "zipf(exponent=2.5)", "hot(share=0.3)"})
    for (const int64_t experts : {4, 5, 7, 64})
      for (const int64_t top_k : {1, 2, 3})
        for (const int64_t tokens : {1, 2, 11, 128}) {
          const std::vector<int64_t> counts = counts_of(text, {experts, top_k, tokens}, 3);
          const std::vector<double> shares = expert_shares(routing_of(text), experts, top_k);
          for (size_t e = 0; e < counts.size(); ++e)
            EXPECT_LT(std::abs(static_cast<double>(counts[e]) - shares[e] * double(tokens * top_k)), 1);
        }
}

TEST(Routing, OfLayersGivesOtherTokensToTheSameExpert) {
  const Choice balanced = routing_of("balanced");
  EXPECT_NE(experts_of_tokens(balanced, {4, 2, 16}, 0), experts_of_tokens(balanced, {4, 2, 16}, 1));
  EXPECT_EQ(experts_of_tokens(balanced, {4, 2, 16}, 1), experts_of_tokens(balanced, {4, 2, 16}, 1));
}

TEST(Routing, MovesByTheHotExperts) {
  EXPECT_EQ(moved_in_a_step(routing_of("hot(experts=2, share=1, moves=true)")), 2);
  EXPECT_EQ(moved_in_a_step(routing_of("hot(experts=2)")), 0);
  EXPECT_EQ(moved_in_a_step(routing_of("zipf")), 0);
}

TEST(Routing, RefusesSharesThatTokensCannotHave) {
  const auto table = [](const std::string& routing) {
    return [=] {
      const Choice model = choice_from_text("moe(experts=4, top_k=2, routing=" + routing + ")");
      model_spec("moe").table(resolve(model, model_spec("moe").options, "model").options);
    };
  };
  EXPECT_THAT(
      table("hot(share=0.6)"),
      ThrowsMessage<UsageError>(HasSubstr(
          "routing hot: a share of 0.6 for 1 of 4 experts gives an expert 0.6 of the copies, and with "
          "top_k 2 it can get at most 0.5; take a share from 0 to 0.5")));
  EXPECT_THAT(table("hot(experts=3, share=0.4)"),
              ThrowsMessage<UsageError>(HasSubstr("take a share from 0.5 to 1")));
  EXPECT_THAT(table("hot(experts=4)"),
              ThrowsMessage<UsageError>(
                  HasSubstr("routing hot: 4 of 4 experts are hot; at least one has to be left")));
  EXPECT_THAT(table("cold"), ThrowsMessage<UsageError>(HasSubstr("balanced, hot, learned, zipf")));
  EXPECT_NO_THROW(table("hot(experts=2, share=0)")());
}

}  // namespace
}  // namespace shardmark::specs

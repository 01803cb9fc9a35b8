// Tests which rows of tokens travel between the ranks that share experts, and holds the formula of their
// number against published logs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "specs/parts.h"
#include "specs/routing.h"
#include "specs/tokens.h"
#include "strategies/choice_kinds.h"

namespace shardmark::specs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Choice expert_parts(const std::string& text) {
  const Choice choice = choice_from_text(text);
  const Choice resolved = resolve(choice, parts_kind().options(choice.name), "parts");
  parts_kind().check(resolved);
  return resolved;
}
TokenExchange exchange_of(const std::string& text) { return TokenExchange(expert_parts(text)); }

int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

TEST(TokenRows, OfCopiesAreThoseThatTheRoutingGivesToARanksExperts) {
  for (const std::string routing : {"balanced", "zipf(exponent=1)", "hot(experts=2, share=0.25)"})
    for (const int64_t ranks : {1, 2, 4}) {
      const TokenExchange exchange =
          exchange_of("experts(width=3, experts=8, top_k=2, routing=" + routing + ")");
      const TokenRows rows = rows_to_ranks(exchange, ranks, 40);
      const std::vector<int64_t> experts = experts_of_tokens(exchange.routing, {8, 2, 40}, 0);
      std::vector<int64_t> expected(static_cast<size_t>(ranks));
      for (const int64_t expert : experts) ++expected[static_cast<size_t>(expert * ranks / 8)];
      EXPECT_EQ(rows.count, expected) << routing;
      EXPECT_EQ(std::ssize(rows.token), 80);
      EXPECT_EQ(std::ssize(rows.weight), 80);
    }
}

// A rank that has several experts of a token gets it once, with the sum of the weights of its copies.
TEST(TokenRows, OncePerRankAreTheDifferentRanksOfEachToken) {
  const std::string options = "width=3, experts=16, top_k=4, routing=zipf(exponent=0.5)";
  const TokenExchange copies = exchange_of("experts(" + options + ")"),
                      once = exchange_of("experts(" + options + ", once_per=rank)");
  using Sums = std::map<std::pair<int64_t, int64_t>, double>;  // by rank and token
  const auto sums = [](const TokenRows& rows) {
    Sums sums;
    size_t row = 0;
    for (size_t rank = 0; rank < rows.count.size(); ++rank)
      for (int64_t i = 0; i < rows.count[rank]; ++i, ++row) sums[{rank, rows.token[row]}] += rows.weight[row];
    EXPECT_EQ(row, rows.token.size());
    return sums;
  };
  for (const int64_t ranks : {1, 2, 4, 16}) {
    const TokenRows rows = rows_to_ranks(once, ranks, 100);
    const Sums of_rows = sums(rows);
    EXPECT_EQ(of_rows.size(), rows.token.size()) << "a token comes twice to a rank";
    EXPECT_EQ(of_rows, sums(rows_to_ranks(copies, ranks, 100)));
    if (ranks == 1) {
      EXPECT_EQ(rows.count, std::vector<int64_t>{100});
    }
    if (ranks == 16) {
      EXPECT_EQ(rows.count, rows_to_ranks(copies, ranks, 100).count);
    }
  }
}

TEST(TokenRows, HaveWeightsWhoseSumsAreExactInEveryType) {
  const TokenRows rows = rows_to_ranks(exchange_of("experts(width=1, experts=64, top_k=64)"), 1, 2);
  double most = 0;
  std::map<int64_t, double> sums;
  for (size_t row = 0; row < rows.token.size(); ++row)
    most = std::max(most, sums[rows.token[row]] += rows.weight[row]);
  constexpr double kLargest = 2, kUnit = 0.125, kOfBfloat16 = 256;  // 8 bits of mantissa
  EXPECT_LE(most * kLargest / kUnit, kOfBfloat16);
  EXPECT_EQ(std::set<double>(rows.weight.begin(), rows.weight.end()), (std::set<double>{0.125, 0.25}));
}

// Where chance alone decides which experts a token has together, it goes to as many ranks as the formula
// says.
TEST(TokenRows, GoToAsManyRanksAsTheFormulaSays) {
  for (const int64_t ranks : {2, 8, 64}) {
    const TokenRows rows =
        rows_to_ranks(exchange_of("experts(experts=256, top_k=8, once_per=rank)"), ranks, 4096);
    const double expected = distinct_parts(ranks, 256, 8);
    EXPECT_NEAR(static_cast<double>(sum(rows.count)) / 4096, expected, 0.01 * expected) << ranks;
  }
}

TEST(TokenParts, AreRowsOfTheWidth) {
  const Choice parts =
      expert_parts("experts(width=10, experts=4, top_k=1, routing=hot(experts=1, share=0.5))");
  const Parts shared = share_out(parts, 2, 85);  // 8 tokens and a half
  EXPECT_EQ(shared.between(0, 0) + shared.between(0, 1), 80);
  EXPECT_GE(shared.between(0, 0), 50);
  EXPECT_EQ(shared.reversed().between(1, 0), shared.between(0, 1));
  EXPECT_EQ(shared.reversed().sent_by(0), shared.received_by(0));
  EXPECT_EQ(shared.reversed().busiest_with_others(), shared.busiest_with_others());
}

// What each rank sends and receives, counted row by row as the stages say, is what the formula says.
TEST(TokenTraffic, IsThatOfTheRowsOfAllStages) {
  for (const std::string once_per : {"copy", "rank", "node"})
    for (const auto& [ranks, per_node] : {std::pair(4, 4), {4, 2}, {8, 2}, {8, 4}, {6, 1}}) {
      const TokenExchange exchange = exchange_of(
          "experts(width=1, experts=24, top_k=5, routing=zipf(exponent=1), once_per=" + once_per + ")");
      std::vector<TokenTraffic> sent(static_cast<size_t>(ranks)), received(static_cast<size_t>(ranks));
      std::vector<int64_t> in_the_end(static_cast<size_t>(ranks));
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const std::vector<TokenRows> stages = token_stages(exchange, ranks, per_node, rank / per_node, 60);
        for (size_t stage = 0; stage < stages.size(); ++stage)
          for (int64_t i = 0; i < std::ssize(stages[stage].count); ++i) {
            const int64_t to = stages.size() == 1 ? i
                               : stage == 0       ? i * per_node + rank % per_node
                                                  : rank / per_node * per_node + i;
            const int64_t rows = stages[stage].count[static_cast<size_t>(i)];
            if (stage + 1 == stages.size()) in_the_end[static_cast<size_t>(to)] += rows;
            if (to == rank) continue;
            const auto part =
                to / per_node == rank / per_node ? &TokenTraffic::within : &TokenTraffic::between;
            for (TokenTraffic* side :
                 {&sent[static_cast<size_t>(rank)], &received[static_cast<size_t>(to)]}) {
              side->*part += rows;
              side->exchanged += rows;
            }
          }
      }
      const TokenTraffic traffic = token_traffic(exchange, ranks, per_node, 60);
      TokenTraffic busiest;
      double moved = 0;
      for (size_t rank = 0; rank < sent.size(); ++rank) {
        for (const auto part : {&TokenTraffic::within, &TokenTraffic::between, &TokenTraffic::exchanged})
          busiest.*part = std::max({busiest.*part, sent[rank].*part, received[rank].*part});
        moved += static_cast<double>(sent[rank].exchanged) / static_cast<double>(ranks);
      }
      const std::string where = fmt::format("{} on {} ranks, {} a node", once_per, ranks, per_node);
      EXPECT_EQ(traffic.within, busiest.within) << where;
      EXPECT_EQ(traffic.between, busiest.between) << where;
      EXPECT_EQ(traffic.exchanged, busiest.exchanged) << where;
      EXPECT_DOUBLE_EQ(traffic.moved, moved) << where;
      EXPECT_EQ(traffic.logical, std::max(*std::max_element(in_the_end.begin(), in_the_end.end()),
                                          sum(rows_to_ranks(exchange, ranks, 60).count)))
          << where;
    }
}

// Between nodes a token travels once to each node: less than once to each rank.
TEST(TokenTraffic, OncePerNodeSendsLessBetweenNodes) {
  const auto between = [](const std::string& once_per) {
    const TokenExchange exchange = exchange_of("experts(width=1, once_per=" + once_per + ")");
    return static_cast<double>(token_traffic(exchange, 16, 8, 4096).between);
  };
  const double expected = distinct_parts(16, 256, 8) / 2 / (distinct_parts(2, 256, 8) / 2);
  EXPECT_NEAR(between("rank") / between("node"), expected, 0.03 * expected);
  EXPECT_GT(between("copy"), between("rank"));
}

TEST(TokenParts, AreRefusedWithWhatIsWrong) {
  const auto parts = [](const std::string& options) {
    return [=] { expert_parts("experts(" + options + ")"); };
  };
  EXPECT_THAT(parts("experts=4, top_k=5"),
              ThrowsMessage<UsageError>(HasSubstr("top_k 5 different experts, of 4")));
  EXPECT_THAT(parts("routing=learned"), ThrowsMessage<UsageError>(HasSubstr("no router that learns")));
  EXPECT_THAT(parts("routing=hot(moves=true)"), ThrowsMessage<UsageError>(HasSubstr("leave out moves")));
  EXPECT_THAT(parts("routing=hot(share=0.9)"),
              ThrowsMessage<UsageError>(HasSubstr("take a share from 0 to 0.125")));
  EXPECT_EQ(exchange_impossible(exchange_of("experts"), 3, 7168),
            "parts experts: 256 experts are not divisible by 3 ranks; take a multiple of 3");
  EXPECT_EQ(exchange_impossible(exchange_of("experts"), 2, 7167),
            "parts experts: 7167 elements hold no token of width 7168; take more bytes or less width");
  EXPECT_THAT(exchange_impossible(exchange_of("experts(width=1)"), 2, 1 << 21),
              HasSubstr("at most 524288 tokens"));
  EXPECT_EQ(exchange_impossible(exchange_of("experts"), 2, 7168), "");
}

// The table of how many ranks, and nodes of 8 ranks, a token of DeepSeek-V3 goes to.
TEST(DistinctParts, OfDeepSeekV3) {
  const std::map<int64_t, double> expected = {{1, 1},      {2, 1.993},  {4, 3.614},   {8, 5.295}, {16, 6.523},
                                              {32, 7.267}, {64, 7.676}, {128, 7.890}, {256, 8}};
  for (const auto& [parts, distinct] : expected) EXPECT_NEAR(distinct_parts(parts, 256, 8), distinct, 5e-4);
}

// A log of DeepEP V2 on 16 GPUs of two nodes (awslabs/awsome-distributed-ai, pull request 1234): 8,192 tokens
// of 7,168 in fp8 go once to each rank, and 12 of 16 ranks print 397.2 to 402.1 MB. A token has its scales (4
// bytes for 128 elements), and for each choice an index of 8 bytes and a weight of 4. The log's two rates,
// 115 to 118 GB/s counted by node and 376 to 387 counted by rank, are in the ratio of the two counts.
TEST(DistinctParts, ExplainTheBytesOfALogOfDeepEp) {
  constexpr double kTokenBytes = 7168 + 4 * 7168.0 / 128 + 12 * 8;
  const double bytes = 8192 * distinct_parts(16, 256, 8) * kTokenBytes;
  EXPECT_NEAR(bytes, 400.15e6, 0.01e6);
  for (const double printed : {400593024.0, 401401728.0, 397433088.0, 399904128.0, 397245888.0, 402105600.0})
    EXPECT_NEAR(printed, bytes, 0.01 * bytes);
  const double ratio = distinct_parts(2, 256, 8) / distinct_parts(16, 256, 8);
  EXPECT_NEAR(ratio, 0.3055, 5e-5);
  for (const auto& [by_node, by_rank] : {std::pair(115.0, 376.0), std::pair(118.0, 386.0)})
    EXPECT_NEAR(by_node / by_rank, ratio, 0.01 * ratio);
}

// The table of DeepEP V1 on H800 (its docs/legacy.md), by tests/legacy/test_internode.py: a token's 8 experts
// are on at most 4 nodes. On 8 GPUs tokens are dispatched at 153 GB/s over NVLink. With 45 GB/s of a network
// card (the rows of V2), the slower of the two links gives the published rates of 16, 32 and 64 GPUs, which
// count what goes to each node, the own one included.
TEST(DistinctParts, AndTwoLinksExplainTheTableOfDeepEp) {
  constexpr double kNvlink = 153, kNic = 45;
  constexpr int64_t kExperts = 256, kTopK = 8, kMostNodes = 4;
  const std::map<int64_t, double> published = {{16, 43}, {32, 58}, {64, 51}};  // GB/s
  for (const auto& [ranks, rate] : published) {
    const int64_t nodes = ranks / 8, chosen = std::min(nodes, kMostNodes);
    const int64_t experts = kExperts * chosen / nodes;  // those that a token can choose
    const double to_nodes = distinct_parts(chosen, experts, kTopK);
    const double to_ranks = distinct_parts(chosen * 8, experts, kTopK);
    const double remote = static_cast<double>(nodes - 1) / static_cast<double>(nodes);
    const double time = std::max(to_ranks / kNvlink, to_nodes * remote / kNic);
    EXPECT_NEAR(to_nodes / time, rate, 0.09 * rate) << ranks << " GPUs";
  }
}

}  // namespace
}  // namespace shardmark::specs

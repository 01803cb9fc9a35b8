// Tests the import of what benchmarks of dispatch and combine print.
#include <fmt/format.h>

#include "import_fixture.h"
#include "specs/tokens.h"

namespace shardmark::imports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "dispatch fp8 1064.0 us 376.5 GB/s" of each result.
std::vector<std::string> texts(const Contents& contents) {
  std::vector<std::string> texts;
  for (const Measured& measured : contents.measured) {
    const CollectivePoint& c = measured.record.point.collective;
    const Measures& m = measured.record.measures;
    texts.push_back(
        fmt::format("{} {} {:.1f} us {:.1f} GB/s", c.operation, c.dtype, m.step_s * 1e6, m.algbw_gb_s));
  }
  return texts;
}

TEST(ImportExpertParallel, ReadsDeepEpWithItsSlowestRank) {
  const Contents contents = contents_of(source_named("deepep-v2.log"));
  EXPECT_THAT(texts(contents),
              ElementsAre("dispatch fp8 1065.0 us 376.9 GB/s", "combine bfloat16 2142.0 us 360.0 GB/s"));
  const Record& dispatch = contents.measured.front().record;
  EXPECT_EQ(dispatch.point.ranks, 16);
  EXPECT_EQ(contents.measured.front().nodes, 2);
  EXPECT_EQ(dispatch.point.collective.bytes, int64_t{8192} * 7168);
  EXPECT_EQ(dispatch.point.collective.parts,
            "experts(width=7168, experts=256, top_k=8, routing=balanced, once_per=node)");
  // Within its node a rank gets 7/8 of all rows, and from other nodes half of those that go to a node.
  const double by_rank = specs::distinct_parts(16, 256, 8), by_node = specs::distinct_parts(2, 256, 8);
  EXPECT_NEAR(dispatch.measures.busbw_gb_s / dispatch.measures.algbw_gb_s, 7.0 / 8 + by_node / 2 / by_rank,
              0.01);
  EXPECT_EQ(contents.transport, "deepep");
  EXPECT_THAT(contents.warnings, ElementsAre(HasSubstr("1 lines of operations in other forms")));
}

TEST(ImportExpertParallel, ReadsTheTestsOfDeepEpV1) {
  EXPECT_THAT(texts(contents_of(source_named("deepep-v1-internode.log"), {.ranks = 16})),
              ElementsAre("dispatch fp8 1330.0 us 148.3 GB/s", "dispatch bfloat16 2690.0 us 142.4 GB/s",
                          "combine bfloat16 2716.0 us 141.0 GB/s"));
  const Contents low_latency = contents_of(source_named("deepep-v1-low-latency.log"), {.ranks = 8});
  EXPECT_THAT(texts(low_latency),
              ElementsAre("dispatch fp8 57.7 us 130.3 GB/s", "combine bfloat16 72.8 us 199.7 GB/s"));
  EXPECT_THAT(low_latency.measured.front().record.point.collective.parts, HasSubstr("once_per=copy"));
  EXPECT_EQ(low_latency.transport_options.at("mode"), "low_latency");
}

TEST(ImportExpertParallel, ReadsEpBench) {
  const Contents contents = contents_of(source_named("nccl-ep-bench.log"));
  EXPECT_THAT(texts(contents),
              ElementsAre("dispatch bfloat16 64.8 us 224.3 GB/s", "combine bfloat16 78.5 us 185.2 GB/s"));
  EXPECT_EQ(contents.measured.front().record.point.ranks, 8);
  EXPECT_EQ(contents.transport, "nccl_ep");
  EXPECT_EQ(contents.times, "mean over iterations and ranks");
}

TEST(ImportExpertParallel, AsksForWhatTheLogDoesNotSay) {
  const Source log = source_named("deepep-v1-internode.log");
  EXPECT_THAT(import_error({replaced(log, "[config] num_experts=256", "")}, {.device = "x", .ranks = 16}),
              HasSubstr("deepep-v1-internode.log:11: the log does not say how many tokens"));
  EXPECT_THAT(import_error({log}, {.device = "x"}), HasSubstr("it does not say how many ranks"));
  EXPECT_THAT(import_error({log}, {.device = "x", .ranks = 12}),
              HasSubstr("256 experts are not divisible by 12 ranks"));
  EXPECT_THAT(import_error({source_named("deepep-v2.log")}, {.device = "x", .ranks = 8}), HasSubstr("16"));
}

// A rate that is not of these tokens is of another configuration, or the line is damaged.
TEST(ImportExpertParallel, LeavesOutRatesOfOtherTokens) {
  Source log = source_named("deepep-v2.log");
  log =
      replaced(replaced(log, "8192 (max: 8192)", "4096 (max: 4096)"), "8184 (max: 8192)", "4096 (max: 4096)");
  const Contents contents = contents_of(log);
  EXPECT_THAT(contents.measured, IsEmpty()) << "twice the bytes of fp8 are not taken for bf16";
  EXPECT_THAT(contents.warnings, ElementsAre(HasSubstr("its rate is not that of 4096 tokens"),
                                             HasSubstr("of 4096 tokens"), HasSubstr("left out")));
  const Source damaged = replaced(source_named("nccl-ep-bench.log"), "avg=64.80 us", "avg=4.80 us");
  EXPECT_THAT(texts(contents_of(damaged)), ElementsAre("combine bfloat16 78.5 us 185.2 GB/s"));
  EXPECT_THAT(contents_of(damaged).warnings,
              ElementsAre(HasSubstr("nccl-ep-bench.log:24: left out: its rate is not")));
  EXPECT_THAT(contents_of(replaced(source_named("nccl-ep-bench.log"), "throughput: avg=224.30", "")).warnings,
              ElementsAre(HasSubstr("it has no rank, time and rate")));
  const Contents one_less = contents_of(
      replaced(source_named("deepep-v2.log"), "EP:   5/16 | dispatch: 115", "EP: x | dispatch: 115"));
  EXPECT_THAT(texts(one_less),
              ElementsAre("dispatch fp8 1064.0 us 376.5 GB/s", "combine bfloat16 2142.0 us 360.0 GB/s"))
      << "a damaged line takes no other with it";
}

// What import writes, every command reads: no message is larger than one that a run may have.
TEST(ImportExpertParallel, LeavesOutMessagesThatNoRunHas) {
  const Contents contents = contents_of(
      {"x.log",
       "[config] num_tokens=2097152, hidden=1048576, num_topk=1, num_experts=2\n"
       "[rank 0] Dispatch bandwidth: 2199.02 GB/s, avg_t=1000000.00 us | Combine bandwidth: 4398.05 GB/s, "
       "avg_t=1000000.00 us\n"},
      {.ranks = 2});
  EXPECT_THAT(contents.measured, IsEmpty());
  EXPECT_THAT(contents.warnings,
              ElementsAre(HasSubstr("no run has such a message"), HasSubstr("no run has such a message")));
}

// What is not stored yet when another configuration begins is of the one before.
TEST(ImportExpertParallel, KeepsRunsOfOneLogApart) {
  const Source log = source_named("deepep-v2.log");
  std::string other = log.text;
  for (size_t at; (at = other.find("> Tokens: 81")) != std::string::npos;)
    other.replace(at, other.find(",", at) - at, "> Tokens: 4096 (max: 4096)");
  const auto first = contents_of({"both.log", other + log.text});
  EXPECT_THAT(texts(first), SizeIs(2)) << "the first run's rates are not those of 4,096 tokens";
  const auto last = contents_of({"both.log", log.text + other});
  EXPECT_THAT(texts(last), SizeIs(2)) << "the last results of the first run are of 8,192 tokens";
  EXPECT_EQ(last.measured.front().record.point.collective.bytes, int64_t{8192} * 7168);
}

// Later versions of ep_bench print the times of their kernels alone as well.
TEST(ImportExpertParallel, TakesNoTimesOfKernelsAlone) {
  const Source log = source_named("nccl-ep-bench.log");
  const std::string summary = log.text.substr(log.text.find("Dispatch (BF16):"));
  EXPECT_THAT(texts(contents_of({"x.log", log.text + "\n--- Kernel-only performance ---\n" + summary})),
              SizeIs(2));
}

TEST(ImportExpertParallel, RefusesTwoKindsOfKernelsInOneFile) {
  const std::string v2 = source_named("deepep-v2.log").text,
                    low = source_named("deepep-v1-low-latency.log").text;
  EXPECT_THAT(error_of([&] {
                contents_of({"both.log", v2 + low}, {.ranks = 16});
              }),
              HasSubstr("split the file"));
}

}  // namespace
}  // namespace shardmark::imports

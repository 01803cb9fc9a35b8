// OSU, Intel MPI Benchmarks, MLPerf logs and tables become records.
#include <cmath>

#include "import_fixture.h"

namespace shardmark::imports {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ImportMpi, ReadsOsu) {
  const Contents said = contents_of(source_named("osu-5.8.txt"), {.ranks = 2});
  EXPECT_THAT(said.measured, SizeIs(19));
  EXPECT_EQ(said.version, "5.8");
  const Record& last = said.measured.back().record;
  EXPECT_EQ(last.point.collective.bytes, 1048576);
  EXPECT_EQ(last.point.collective.dtype, "float32");
  EXPECT_DOUBLE_EQ(last.measures.step_s, 558.56e-6);
  EXPECT_NEAR(last.measures.busbw_gb_s, 1.877, 0.001);
  EXPECT_THAT(error_of([] { contents_of(source_named("osu-5.8.txt")); }),
              HasSubstr("osu-5.8.txt:2: it does not say how many ranks"));
}

TEST(ImportMpi, TakesTheSlowestRankAndTheWholeMessage) {
  const Contents said = contents_of(source_named("osu-7.4-full.txt"), {.ranks = 4});
  ASSERT_THAT(said.measured, SizeIs(2));
  const Record& last = said.measured.back().record;
  EXPECT_EQ(last.point.collective.bytes, 4 * 1048576) << "a size is the part of each rank";
  EXPECT_DOUBLE_EQ(last.measures.step_s, 104.33e-6);
  EXPECT_EQ(last.measures.num_steps, 10);
  EXPECT_THAT(said.times, HasSubstr("of the slowest rank"));
  EXPECT_THAT(import_error({source_named("osu-5.8.txt"), source_named("osu-7.4-full.txt")},
                           {.device = "cpu", .transport = "mpi", .ranks = 4}),
              HasSubstr("times of another kind"));
}

TEST(ImportMpi, RefusesMessagesBetweenTwoRanks) {
  EXPECT_THAT(error_of([] { contents_of(source_named("osu-latency.txt"), {.ranks = 2}); }),
              AllOf(HasSubstr("osu-latency.txt:1: "), HasSubstr("a study holds blocking collectives")));
}

TEST(ImportMpi, ReadsImb) {
  const Contents said = contents_of(source_named("imb-2021.6.txt"));
  EXPECT_THAT(said.measured, SizeIs(6));
  EXPECT_EQ(said.version, "2021.6");
  const Record& last = said.measured.back().record;
  EXPECT_EQ(last.point.ranks, 144);
  EXPECT_DOUBLE_EQ(last.measures.step_s, 197505.86e-6);
  EXPECT_EQ(last.measures.num_steps, 1);
  const Contents other = contents_of(
      replaced(source_named("imb-2021.6.txt"), "Benchmarking Allreduce", "Benchmarking PingPong"));
  EXPECT_THAT(other.measured, IsEmpty());
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr("left out: PingPong")));
}

TEST(ImportMpi, AsksForWhatIsNotSaid) {
  const Source imb = source_named("imb-2021.6.txt");
  EXPECT_THAT(import_error({imb}), HasSubstr("give --device"));
  EXPECT_THAT(import_error({imb}, {.device = "AMD EPYC"}), HasSubstr("give --transport"));
  const Imported unplaced = imported_results({imb}, {.device = "AMD EPYC", .transport = "mpi"});
  EXPECT_THAT(unplaced.environment.nodes, IsEmpty()) << "nobody said on how many nodes";
  const Imported placed = imported_results({imb}, {.device = "AMD EPYC", .transport = "mpi", .nodes = 4});
  EXPECT_EQ(placed.environment.rank_nodes[36], "node2");
  EXPECT_THAT(import_error({imb}, {.device = "AMD EPYC", .transport = "mpi", .nodes = 5}),
              HasSubstr("no whole number"));
}

TEST(ImportMlPerf, TimesStepsByBlocks) {
  const Contents said = contents_of(source_named("mlperf-5.1-amd.txt"), {.ranks = 8});
  ASSERT_THAT(said.measured, SizeIs(1));
  const Record& record = said.measured.front().record;
  EXPECT_EQ(record.point.training.model.name, "llama31_8b");
  EXPECT_EQ(record.point.training.batch_size, 2);
  EXPECT_EQ(record.point.training.accumulation, 2);
  EXPECT_EQ(record.point.global_batch(), 32);
  EXPECT_NEAR(record.measures.step_s, 492.093 / 384, 1e-3);
  EXPECT_NEAR(record.measures.samples_per_s, 24.9, 0.1);
  EXPECT_EQ(record.measures.num_steps, 5 * 384);
  EXPECT_EQ(record.started, "2025-10-08T23:38:34Z");
  EXPECT_EQ(said.facts.at("seed"), "11993");
  EXPECT_THAT(said.warnings, IsEmpty());
}

TEST(ImportMlPerf, TakesTheMachineOfItsSubmitter) {
  const Contents said = contents_of(source_named("mlperf-5.1-cisco.txt"));
  ASSERT_THAT(said.measured, SizeIs(1));
  EXPECT_THAT(said.devices, ElementsAre("NVIDIA H200"));
  EXPECT_EQ(said.measured.front().nodes, 1);
  const Record& record = said.measured.front().record;
  EXPECT_EQ(record.point.ranks, 8);
  EXPECT_EQ(record.point.training.batch_size, 1);
  EXPECT_EQ(record.measures.loss_first, 2.0620665550231934);
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("2 micro-batches do not divide 8 samples over 8 ranks")));
}

TEST(ImportMlPerf, RefusesWhatItCannotTime) {
  const Source amd = source_named("mlperf-5.1-amd.txt");
  EXPECT_THAT(error_of([&] { contents_of(replaced(amd, "24.592664315398554", "201463.0"), {.ranks = 8}); }),
              AllOf(HasSubstr("mlperf-5.1-amd.txt:"), HasSubstr("does it count tokens?")));
  EXPECT_THAT(error_of([&] {
                contents_of(
                    replaced(amd, "\"lineno\": 277, \"samples_count\"", "\"lineno\": 277, \"epoch_num\""),
                    {.ranks = 8});
              }),
              HasSubstr("does not say samples_count"));
  Source cut = amd;
  cut.text.resize(cut.text.find("run_stop"));
  EXPECT_THAT(contents_of(cut, {.ranks = 8}).warnings,
              testing::Contains(HasSubstr("ends before its run does")));
}

TEST(ImportTable, ReadsCsv) {
  const Contents said = contents_of(source_named("training.csv"));
  ASSERT_THAT(said.measured, SizeIs(8));
  EXPECT_THAT(said.warnings, IsEmpty());
  const Measured& first = said.measured.front();
  EXPECT_EQ(first.line, 3);
  EXPECT_EQ(first.launch, "1");
  EXPECT_EQ(first.record.point.training.batch_size, 8);
  EXPECT_EQ(first.record.point.training.scaling, "strong");
  EXPECT_DOUBLE_EQ(first.record.measures.step_s, 0.4);
  EXPECT_DOUBLE_EQ(first.record.measures.tokens_per_s, 160 * 1024) << "the sequences of gpt2_xl";
  EXPECT_DOUBLE_EQ(said.measured[1].record.measures.samples_per_s, 64 / 0.404);
}

TEST(ImportTable, ReadsYamlAndKeepsUnknownNames) {
  const Contents said = contents_of(source_named("training.yaml"));
  ASSERT_THAT(said.measured, SizeIs(2));
  const Record& record = said.measured.front().record;
  EXPECT_EQ(record.point.training.model.name, "our-8b");
  EXPECT_EQ(record.point.training.precision, "fp8");
  EXPECT_DOUBLE_EQ(record.measures.samples_per_s, 8);
  EXPECT_DOUBLE_EQ(record.measures.step_s, 1);
  EXPECT_THAT(said.warnings,
              ElementsAre(AllOf(HasSubstr("kept as written"), HasSubstr("our-8b"), HasSubstr("megatron"))));
}

TEST(ImportTable, RefusesContradictionsByLine) {
  const Source csv = source_named("training.csv");
  const auto error = [&](const std::string& from, const std::string& to) {
    return error_of([&] { contents_of(replaced(csv, from, to)); });
  };
  EXPECT_THAT(error("400,160,1", "400,16,1"),
              HasSubstr("training.csv:3: samples/s, and the batch / the step: 16 and 160 contradict"));
  EXPECT_THAT(error("404,,2", "0.404,,2"),
              HasSubstr("training.csv:4: a step of 0.000404 s, of 0.4 s in line 3 of the same setting"));
  EXPECT_THAT(error("404,,2", ",,2"), HasSubstr("training.csv:4: no time and no rate"));
  EXPECT_THAT(error("404,,2", "404 ms,,2"), HasSubstr("training.csv:4: step_ms: expected a number"));
  EXPECT_THAT(error("step_ms,samples_per_s", "step_ms,step_s"), HasSubstr("step_s and step_ms are one time"));
  EXPECT_THAT(error("bf16,64,404", "bf16,63,404"), HasSubstr("a global batch of 63 is no whole number"));
  EXPECT_THAT(error("launch\n", "lunch\n"), HasSubstr("unknown column 'lunch'; did you mean 'launch'?"));
  EXPECT_THAT(error("\"fsdp(shard=full)\"", "\"fsdp(shard=ful)\""), HasSubstr("training.csv:3: strategy"));
  EXPECT_THAT(error("8,1,gpt2_xl,ddp,bf16,64,380,,1", "8,1,gpt2_xl,ddp,bf16,64,380"),
              HasSubstr("training.csv:9: 7 cells, but 9 columns"));
  EXPECT_THAT(
      import_error({replaced(csv, "32,4,", "32,2,")}, {.device = "NVIDIA H100", .transport = "nccl"}),
      AllOf(HasSubstr("training.csv:7: 32 ranks on 2 nodes"), HasSubstr("a study has one placement")));
}

TEST(ImportTable, LaunchesAreRepeatsThatCount) {
  const Imported imported =
      imported_results({source_named("training.csv")}, {.device = "NVIDIA H100", .transport = "nccl"});
  EXPECT_EQ(imported.num_launches, 2);
  EXPECT_EQ(imported.environment.world_ranks, 32);
  EXPECT_EQ(imported.environment.nodes.size(), 4u);
  EXPECT_EQ(imported.records[0].point.repeat, 0);
}

TEST(Import, NamesWhatItKnows) {
  EXPECT_THAT(import_error({{"notes.txt", "nothing\n"}}),
              AllOf(HasSubstr("notes.txt: nothing that import knows"), HasSubstr("nccl-tests")));
  Source both = source_named("osu-5.8.txt");
  both.text += source_named("imb-2021.6.txt").text;
  EXPECT_THAT(import_error({both}, {.ranks = 2}), HasSubstr("it holds imb and osu: split it"));
}

}  // namespace
}  // namespace shardmark::imports

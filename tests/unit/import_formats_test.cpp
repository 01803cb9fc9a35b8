// Tests the import of results of the OSU benchmarks, the Intel MPI Benchmarks and MLPerf logs.
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

TEST(ImportMpi, KeepsBuffersOfGpusApart) {
  const Source host = source_named("osu-5.8.txt");
  const Source gpu = replaced(host, "# OSU MPI Allreduce", "# OSU MPI-CUDA Allreduce");
  const Given given{.device = "NVIDIA H100", .transport = "mpi", .ranks = 2};
  EXPECT_EQ(imported_results({host}, given).environment.transport, "mpi");
  EXPECT_EQ(imported_results({gpu}, given).environment.transport, "mpi(buffers=CUDA)");
  EXPECT_THAT(import_error({host, gpu}, given), HasSubstr("a study is of one transport"));
  EXPECT_THAT(import_error({{"both.txt", host.text + gpu.text}}, given), HasSubstr("split the file"));
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

// With IMB-MPI1 -red_data_type double, the header names the type of the elements and the reduction.
TEST(ImportMpi, ReadsTheElementsOfImb) {
  const Source imb = source_named("imb-2021.6.txt");
  EXPECT_EQ(contents_of(imb).measured.front().record.point.collective.dtype, "float32");
  const Contents doubles = contents_of(replaced(imb, "MPI_FLOAT", "MPI_DOUBLE"));
  EXPECT_EQ(doubles.measured.front().record.point.collective.dtype, "float64");
  const Contents largest = contents_of(replaced(imb, "MPI_SUM", "MPI_MAX"));
  EXPECT_EQ(largest.measured.front().record.point.collective.reduction, "max");
  const Source gather = replaced(imb, "Benchmarking Allreduce", "Benchmarking Allgather");
  const Contents chars = contents_of(replaced(gather, "MPI_BYTE", "MPI_CHAR"));
  EXPECT_EQ(chars.measured.front().record.point.collective.dtype, "MPI_CHAR");
  EXPECT_EQ(chars.measured.front().record.point.collective.reduction, "none");
}

// OSU 7.3 with -f prints all columns but names only the first.
TEST(ImportMpi, ReadsColumnsOfOsuWithoutNames) {
  const Contents said = contents_of(
      {"a.txt",
       "# OSU MPI Reduce Latency Test v7.3\n# Size       Avg Latency(us)\n4 49.70 17.48 105.89 1000\n"
       "8 50.00 18.00 106.00 1000\n"},
      {.ranks = 4});
  ASSERT_THAT(said.measured, SizeIs(2));
  EXPECT_DOUBLE_EQ(said.measured.front().record.measures.step_s, 105.89e-6);
  EXPECT_EQ(said.measured.front().record.measures.num_steps, 1000);
  EXPECT_THAT(said.times, HasSubstr("of the slowest rank"));
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("a.txt:3: its header names one time")));
  EXPECT_THAT(import_error({{"a.txt",
                             "# OSU MPI Reduce Latency Test v7.3\n# Size       Avg Latency(us)\n"
                             "4 49.70 17.48 105.89 1000 7\n"}},
                           {.ranks = 4}),
              HasSubstr("it has 6 numbers, and the header names 2 columns"));
}

// A damaged row of a table is reported instead of being dropped silently.
TEST(ImportMpi, NamesRowsWhoseSizeIsDamaged) {
  for (const char* size :
       {"10485x6", "1,048,576", "-1048576", "1048576.", "99999999999999999999", "\x01 1048576"}) {
    const Contents osu = contents_of(
        replaced(source_named("osu-5.8.txt"), "\n1048576 ", std::string("\n") + size + " "), {.ranks = 2});
    EXPECT_THAT(osu.measured, SizeIs(18)) << size;
    EXPECT_THAT(osu.warnings, ElementsAre(HasSubstr("left out"))) << size;
    const Contents imb = contents_of(
        replaced(source_named("imb-2021.6.txt"), "      1048576  ", std::string("      ") + size + " "));
    EXPECT_THAT(imb.measured, SizeIs(5)) << size;
    EXPECT_THAT(imb.warnings, ElementsAre(HasSubstr("left out"))) << size;
  }
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

// A log that was cut inside a block, and the log of the run after it in the same file.
TEST(ImportMlPerf, ARunThatIsCutEndsWhereTheNextBegins) {
  const Source amd = source_named("mlperf-5.1-amd.txt");
  const Contents whole = contents_of(amd, {.ranks = 8});
  Source both = amd;
  both.text.resize(both.text.find('\n', both.text.rfind("block_start")) + 1);
  const Contents cut = contents_of(both, {.ranks = 8});
  both.text +=
      replaced(amd, "\"global_batch_size\", \"value\": 32", "\"global_batch_size\", \"value\": 64").text;
  const Contents said = contents_of(both, {.ranks = 8});
  ASSERT_THAT(cut.measured, SizeIs(1));
  ASSERT_THAT(said.measured, SizeIs(2));
  const Record &first = said.measured[0].record, &second = said.measured[1].record;
  EXPECT_EQ(first.measures.step_s, cut.measured.front().record.measures.step_s);
  EXPECT_EQ(first.measures.num_steps, cut.measured.front().record.measures.num_steps);
  EXPECT_EQ(first.point.global_batch(), 32);
  EXPECT_EQ(second.point.global_batch(), 64);
  EXPECT_EQ(second.measures.step_s, 2 * whole.measured.front().record.measures.step_s);
  EXPECT_EQ(2 * second.measures.num_steps, whole.measured.front().record.measures.num_steps);
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("ends before its run does")));
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

// Tests the import of tables and JSON of several versions of nccl-tests. Our bus bandwidth equals theirs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "import/formats/nccl.h"
#include "import_fixture.h"

namespace shardmark::imports {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Record& record_at(const Contents& said, int64_t bytes, bool in_place) {
  for (const Measured& one : said.measured)
    if (one.record.point.collective.bytes == bytes && one.record.point.collective.in_place == in_place)
      return one.record;
  throw std::out_of_range("no such size");
}

TEST(ImportNccl, ReadsATableOfTwoNodes) {
  const Contents said = contents_of(source_named("nccl-2.13-two-nodes.log"), {.operation = "all_reduce"});
  EXPECT_THAT(said.measured, SizeIs(10));
  EXPECT_THAT(said.warnings, IsEmpty());
  EXPECT_EQ(said.rank_nodes.size(), 16u);
  EXPECT_EQ(said.rank_nodes[8], "nccl-tests-h100-worker-1");
  EXPECT_EQ(said.devices.front(), "NVIDIA H100 80GB HBM3");
  const Record& record = record_at(said, 8589934592, false);
  EXPECT_EQ(record.point.ranks, 16);
  EXPECT_EQ(record.point.collective.operation, "all_reduce");
  EXPECT_EQ(record.point.collective.dtype, "float32");
  EXPECT_EQ(record.point.collective.reduction, "sum");
  EXPECT_DOUBLE_EQ(record.measures.step_s, 0.081958);
  EXPECT_NEAR(record.measures.busbw_gb_s, 196.52, 0.005);
  EXPECT_EQ(record.measures.num_wrong, 0);
  EXPECT_FALSE(record.measures.oversubscribed);
  EXPECT_EQ(record.measures.num_steps, 20);
  EXPECT_EQ(record.measures.num_warmup, 5);
  EXPECT_TRUE(std::isnan(record.measures.step_low_s)) << "a mean has no interval";
}

// Before 2022, nccl-tests printed no root, no redop for operations without a reduction, and a deviation
// instead of the number of wrong elements.
TEST(ImportNccl, ReadsTablesBefore213) {
  const Contents gather = contents_of(source_named("nccl-2.10-all-gather.log"), {.operation = "all_gather"});
  EXPECT_THAT(gather.measured, SizeIs(14)) << "the line of 0 B is no message";
  const Record& record = record_at(gather, 8589934592, true);
  EXPECT_NEAR(record.measures.busbw_gb_s, 230.07, 0.01);
  EXPECT_EQ(record.point.collective.reduction, "none");
  EXPECT_EQ(record.measures.num_wrong, -1);
  EXPECT_EQ(gather.measured.front().nodes, 1);
}

TEST(ImportNccl, KnowsTheOperationByTheProgram) {
  const Source log = source_named("nccl-2.18-rep1.log");
  const Contents said = contents_of(log, {.nodes = 1});
  EXPECT_EQ(said.version, "2.18.0");
  EXPECT_EQ(said.versions.at("nccl"), "2.29.7");
  EXPECT_EQ(said.measured.front().record.point.collective.operation, "all_reduce");
  EXPECT_TRUE(said.measured.front().record.measures.oversubscribed) << "both ranks are on device 0";
  EXPECT_THAT(error_of([&] { contents_of(log, {.operation = "broadcast", .nodes = 1}); }),
              HasSubstr("not of --operation broadcast"));
  EXPECT_THAT(error_of([&] {
                contents_of(replaced(log, "starting: all_reduce_perf_mpi", "starting: alltoallv_perf"));
              }),
              HasSubstr("alltoallv_perf has no collective"));
  EXPECT_THAT(error_of([&] { contents_of(source_named("nccl-2.10-all-reduce.log")); }),
              AllOf(HasSubstr("nccl-2.10-all-reduce.log:14: "), HasSubstr("give --operation")));
  // The command before the table also names the operation.
  Source typed = source_named("nccl-2.10-all-reduce.log");
  typed.text = "$ ./build/all_reduce_perf -b 1 -e 8G -f 2 -g 8 -c 0\n" + typed.text;
  EXPECT_THAT(contents_of(typed).measured, SizeIs(14));
}

TEST(ImportNccl, RefusesABusBandwidthThatIsNotOfTheOperation) {
  const Source log = source_named("nccl-2.10-all-reduce.log");
  EXPECT_THAT(error_of([&] { contents_of(log, {.operation = "reduce_scatter"}); }),
              AllOf(HasSubstr("nccl-2.10-all-reduce.log:17: busbw 0.05 contradicts 1024 B in 36.07 us"),
                    HasSubstr("--operation")));
  EXPECT_THAT(error_of([&] {
                contents_of(replaced(log, "134.44  235.26", "134.44  230.26"), {.operation = "all_reduce"});
              }),
              HasSubstr("busbw 230.26 contradicts"));
}

TEST(ImportNccl, ImportsWhatIsWholeOfACutLog) {
  const Contents said = contents_of(source_named("nccl-2.18-cut.log"), {.nodes = 1});
  EXPECT_THAT(said.measured, SizeIs(10));
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("nccl-2.18-cut.log:20: ends inside a table: 10 results"),
                                         HasSubstr("nccl-2.18-cut.log:20: left out: it is not whole")));
}

TEST(ImportNccl, NamesDamagedLinesAndKeepsWrongOnes) {
  const Contents said = contents_of(source_named("nccl-2.18-damaged.log"), {.nodes = 1});
  EXPECT_THAT(said.measured, SizeIs(13));
  EXPECT_THAT(
      said.warnings,
      ElementsAre(
          HasSubstr("nccl-2.18-damaged.log:16: left out: it is not whole"),
          HasSubstr("nccl-2.18-damaged.log:20: left out: 33554432 B in 4753.9 us are 7.058 GB/s, not 2.27")));
  const Record& wrong = record_at(said, 4194304, false);
  EXPECT_EQ(wrong.outcome, Outcome::wrong);
  EXPECT_EQ(wrong.measures.num_wrong, 17);
  EXPECT_EQ(record_at(said, 4194304, true).outcome, Outcome::ok);
}

// A damaged row of a table is reported instead of being dropped silently, whatever the damage to its size.
TEST(ImportNccl, NamesRowsWhoseSizeIsDamaged) {
  const Source log = source_named("nccl-2.18-rep1.log");
  for (const std::string& size :
       {std::string("20971x2"), std::string("2097152."), std::string("2,097,152"), std::string("-2097152"),
        std::string("99999999999999999999"), std::string("\0 2097152", 9), std::string("2.097e6"),
        std::string("h:1:2 [0] misc/socket.cc:1 NCCL WARN Call failed  2097152"),
        std::string("h:1:2 [0] NCCL WARN x 2097152"), std::string("NCCL WARN 2097152"), std::string("")}) {
    const Contents said = contents_of(replaced(log, " 2097152 ", " " + size + " "), {.nodes = 1});
    EXPECT_THAT(said.measured, SizeIs(14)) << size;
    EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("nccl-2.18-rep1.log:16: left out"))) << size;
  }
  Source info = log;
  info.text.insert(
      info.text.find("[1,0]<stdout>:     2097152"),
      "[1,0]<stdout>:h:1:2 [0] NCCL INFO Channel 00/02 :    0   1   2   3   4   5   6   7   8   9\n");
  EXPECT_THAT(contents_of(info, {.nodes = 1}).warnings, IsEmpty()) << "other lines are no rows";
}

TEST(ImportNccl, NamesResultsOfJsonWhoseSizeIsDamaged) {
  const Source json = source_named("nccl-2.19.json");
  for (const char* size : {"-536870912", "1e300", "\"536870912\"", "null", "5.5"}) {
    const Contents said = contents_of(replaced(json, "\"size\":536870912", std::string("\"size\":") + size));
    EXPECT_THAT(said.measured, SizeIs(2)) << size;
    EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("nccl-2.19.json: result 1: left out: its size")))
        << size;
  }
  EXPECT_THAT(contents_of(replaced(json, "\"size\":536870912,", "")).warnings,
              ElementsAre(HasSubstr("result 1: left out: its size")));
  EXPECT_THAT(contents_of(replaced(json, "\"out_of_place\":{", "\"out_of_place\":7,\"x\":{")).warnings,
              ElementsAre(HasSubstr("result 1: left out: its out_of_place is no object")));
}

TEST(ImportNccl, ReadsEachDocumentOfAFile) {
  Source json = source_named("nccl-2.19.json");
  const std::string one = json.text;
  EXPECT_THAT(contents_of({json.name, one + "\n" + one}).measured, SizeIs(8));
  json.text = one + one.substr(0, one.size() - 300);
  const Contents cut = contents_of(json);
  EXPECT_THAT(cut.measured, SizeIs(6));
  EXPECT_THAT(cut.warnings, ElementsAre(HasSubstr("nccl-2.19.json: document 2: ends inside its results")));
  EXPECT_THAT(import_error({{"a.json", one + "[1, 2]"}}), HasSubstr("is no JSON of nccl-tests"));
}

// A folder, host or output file may have the name of a test. It is not mistaken for the program.
TEST(ImportNccl, FindsTheProgramInItsCommand) {
  const auto operation_of = [](const std::string& command) {
    const Contents said = contents_of(
        {"a.log",
         command +
             "\n#  Rank  0 Group  0 Pid  1 on net_perf device  0 [0x00] NVIDIA A100\n"
             "#  Rank  1 Group  0 Pid  3 on net_perf device  1 [0x20] NVIDIA A100\n"
             "net_perf:1:2 [0] NCCL INFO all_gather_perf\n"
             "#       size         count      type   redop    root     time   algbw   busbw #wrong     time  "
             " "
             "algbw   busbw #wrong\n#        (B)    (elements)    (us)  (GB/s)\n 1048576 262144 float none 0 "
             "60.0 17.48 17.48 0 60.0 17.48 17.48 0\n"
             "# Out of bounds values : 0 OK\n"});
    return said.measured.front().record.point.collective.operation;
  };
  EXPECT_EQ(operation_of("# Collective test starting: broadcast_perf"), "broadcast");
  const auto test = [](const std::string& line) { return nccl_test_in(line); };
  EXPECT_EQ(test("+ mpirun -np 2 /fsx/net_perf/nccl-tests/build/broadcast_perf -b 1M"), "broadcast");
  EXPECT_EQ(test("/fsx/all_reduce_perf/broadcast_perf"), "broadcast");
  EXPECT_EQ(test("mpirun ./broadcast_perf -b 1M 2>&1 | tee net_perf"), "broadcast");
  EXPECT_EQ(test("mpirun ./broadcast_perf -b 1M > all_reduce_perf.log"), "broadcast");
  EXPECT_EQ(test("srun /opt/nccl-tests/build/all_reduce_perf_mpi -b 8"), "all_reduce");
  EXPECT_EQ(test("bash -c './sendrecv_perf'"), "sendrecv");
  EXPECT_EQ(test("./alltoallv_perf"), "alltoallv");
  EXPECT_EQ(test("the folder /opt/net_perf/ and a file my_perf.txt"), "");
  EXPECT_EQ(test("nothing"), "");
}

TEST(ImportNccl, RefusesAFailedVerificationThatNamesNoSize) {
  EXPECT_THAT(error_of([] {
                contents_of(
                    replaced(source_named("nccl-2.10-all-reduce.log"), "values : 0 OK", "values : 3 FAILED"),
                    {.operation = "all_reduce"});
              }),
              HasSubstr("does not say for which sizes"));
}

TEST(ImportNccl, ReadsJson) {
  const Contents said = contents_of(source_named("nccl-2.19.json"));
  EXPECT_THAT(said.measured, SizeIs(4));
  EXPECT_EQ(said.rank_nodes.size(), 16u) << "a device of each process, which has 8 GPUs";
  EXPECT_EQ(said.variables.size(), 1u) << "no variable but NCCL's";
  const Record& record = record_at(said, 536870912, false);
  EXPECT_NEAR(record.measures.busbw_gb_s, 193.50, 0.005);
  const Record& sampled = record_at(said, 2147483648, false);
  ASSERT_NE(sampled.series("step"), nullptr);
  EXPECT_EQ(sampled.series("step")->columns, 6);
  EXPECT_NEAR(sampled.measures.step_s, 20567.875e-6, 1e-12);
  EXPECT_NEAR(sampled.measures.busbw_gb_s, 2147483648 / sampled.measures.step_s / 1e9 * 30 / 16, 1e-4);
  EXPECT_LE(sampled.measures.step_low_s, sampled.measures.step_s);
}

TEST(ImportNccl, ReadsJsonThatWasCut) {
  Source source = source_named("nccl-2.19.json");
  source.text.resize(source.text.size() - 300);
  const Contents said = contents_of(source);
  EXPECT_THAT(said.measured, SizeIs(2));
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("ends inside its results, or is damaged, at byte")));
}

TEST(ImportNccl, TakesOneMachineAndTheFlagsThatAgreeWithIt) {
  const Source log = source_named("nccl-2.13-two-nodes.log");
  const Given given{.operation = "all_reduce"};
  const Imported imported = imported_results({log}, given);
  EXPECT_EQ(imported.environment.nodes.size(), 2u);
  EXPECT_EQ(imported.environment.transport, "nccl");
  EXPECT_EQ(imported.environment.threads_per_rank, 0);
  EXPECT_THAT(import_error({log}, {.operation = "all_reduce", .nodes = 4}),
              HasSubstr("16 ranks on 2 nodes, not on 4"));
  EXPECT_THAT(import_error({log}, {.operation = "all_reduce", .ranks = 8}),
              HasSubstr("16 ranks took part, not 8"));
  EXPECT_THAT(import_error({log}, {.device = "NVIDIA A100", .operation = "all_reduce"}),
              HasSubstr("not on NVIDIA A100"));
  EXPECT_THAT(import_error({log, source_named("nccl-2.10-all-reduce.log")}, given),
              HasSubstr("a study is of one machine"));
  EXPECT_THAT(import_error({log, log}, given), HasSubstr("hold the same"));
}

TEST(ImportNccl, EachFileIsALaunch) {
  const Imported imported = imported_results(
      {source_named("nccl-2.18-rep1.log"), source_named("nccl-2.18-rep2.log")}, {.nodes = 1});
  EXPECT_EQ(imported.num_launches, 2);
  EXPECT_THAT(imported.records, SizeIs(32));
  EXPECT_EQ(imported.records.front().point.repeat, 0);
  EXPECT_EQ(imported.records.back().point.repeat, 1);
  const auto& facts = (*imported.environment.facts).at("imported");
  EXPECT_EQ(facts.at("launches").size(), 2u);
  EXPECT_EQ(facts.at("sources").at(0).at("format"), "nccl-tests");
  EXPECT_EQ(facts.at("sources").at(0).at("version"), "2.18.0");
}

TEST(ImportNccl, ALinkKeepsPointsApart) {
  const Imported imported =
      imported_results({source_named("nccl-2.18-rep1.log")}, {.link = "ndr400", .nodes = 1});
  EXPECT_EQ(imported.environment.transport, "nccl(link=ndr400)");
  EXPECT_EQ(imported.records.front().point.transport, "nccl(link=ndr400)");
}

}  // namespace
}  // namespace shardmark::imports

// Tests which ranks, nodes and devices are known from a log of nccl-tests, which are not, and how flags
// complete a file or contradict it.
#include "import_fixture.h"

namespace shardmark::imports {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kColumns =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";
constexpr const char* kRow = " 1048576 262144 float none 0 60.0 17.48 17.48 0 60.0 17.48 17.48 0\n";
constexpr const char* kEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth : 17.48\n";
constexpr const char* kStart = "# Collective test starting: broadcast_perf\n";

std::string rank_line(int64_t rank, const std::string& host, int64_t device, const std::string& bus = "",
                      const std::string& name = "NVIDIA A100") {
  return "#  Rank " + std::to_string(rank) + " Group 0 Pid 7 on " + host + " device " +
         std::to_string(device) + " [" + (bus.empty() ? "0000:0" + std::to_string(device) + ":00" : bus) +
         "] " + name + "\n";
}

Source log_of(const std::string& ranks) { return {"a.log", kStart + ranks + kColumns + kRow + kEnd}; }

TEST(ImportRanks, AreThoseOfThePrograms) {
  const Contents said = contents_of(log_of(rank_line(0, "a", 0) + rank_line(1, "a", 1)));
  EXPECT_THAT(said.measured, SizeIs(2));
  EXPECT_EQ(said.measured.front().record.point.ranks, 2);
  EXPECT_THAT(said.warnings, IsEmpty());
  const Contents unordered = contents_of(log_of(rank_line(1, "b", 0) + rank_line(0, "a", 0)));
  EXPECT_THAT(unordered.rank_nodes, ElementsAre("a", "b"));
}

// In a build without MPI, each process is rank 0 and measures a copy within its GPU.
TEST(ImportRanks, OfTwoProgramsAreRefused) {
  EXPECT_THAT(import_error({log_of(rank_line(0, "a", 0) + rank_line(0, "b", 0))}),
              AllOf(HasSubstr("a.log:3: rank 0 is listed twice"), HasSubstr("built without MPI")));
  const std::string run =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n" +
      rank_line(0, "a", 0);
  const std::string mixed[] = {
      run + run + kColumns + kColumns + kRow + kRow + kEnd + kEnd,
      run + run + kColumns + kRow + kColumns + kRow + kEnd + kEnd,
      run + kColumns + run + kColumns + kRow + kRow + kEnd + kEnd,
      run + kColumns + kRow + run + kRow + kColumns + kRow + kEnd + kEnd,
  };
  for (const std::string& text : mixed)
    EXPECT_THAT(import_error({{"a.log", kStart + text}}),
                HasSubstr("two programs wrote into this file at once"))
        << text;
  // Output of two programs one after the other is two runs of a single GPU each.
  const Imported alone = imported_results(
      {{"a.log", kStart + run + kColumns + kRow + kEnd + kStart + run + kColumns + kRow + kEnd}}, {});
  EXPECT_THAT(alone.warnings,
              ElementsAre(HasSubstr("a.log:6: one rank took part, so nothing moved between ranks")));
  // A failed run is followed by a second try.
  const Contents again =
      contents_of({"a.log", kStart + run + rank_line(1, "a", 1) + "NCCL failure\n" + kStart + run +
                                rank_line(1, "a", 1) + kColumns + kRow + kEnd});
  EXPECT_THAT(again.warnings, IsEmpty());
  EXPECT_THAT(again.measured, SizeIs(2));
}

TEST(ImportRanks, ThatAreLostAreNamed) {
  EXPECT_THAT(import_error({log_of(rank_line(0, "a", 0) + rank_line(2, "a", 2))}),
              HasSubstr("a.log:3: rank 2 is listed, but not rank 1"));
  EXPECT_THAT(import_error({log_of(rank_line(1, "a", 1))}), HasSubstr("rank 1 is listed, but not rank 0"));
  EXPECT_THAT(import_error({log_of(rank_line(7, "a", 1))}), HasSubstr("but not rank 0, 1, 2 and 4 more"));
  // If processes have several GPUs, it is known that the last rank is missing.
  EXPECT_THAT(import_error({log_of("# nThread 1 nGpus 4 minBytes 8\n" + rank_line(0, "a", 0) +
                                   rank_line(1, "a", 1) + rank_line(2, "a", 2))}),
              HasSubstr("3 ranks are listed, but each process has 4"));
}

// The name of a device may end where the line was cut.
TEST(ImportRanks, WithAPartOfADevicesNameAreRefused) {
  const auto line = [](int64_t rank, const std::string& name) {
    return rank_line(rank, "a", rank, "", name);
  };
  EXPECT_THAT(import_error({log_of(line(0, "NVIDIA H100 80GB HBM3") + line(1, "NVIDIA H1"))}),
              AllOf(HasSubstr("a.log:3: the device of rank 1 is called 'NVIDIA H1'"), HasSubstr("was cut")));
  const Contents two = contents_of(log_of(line(0, "NVIDIA H100 NVL") + line(1, "NVIDIA H100 PCIe")));
  EXPECT_THAT(two.warnings, IsEmpty());
}

TEST(ImportRanks, OfADamagedLineAreRefused) {
  const std::string first = rank_line(0, "node-a", 0);
  const std::string damaged[] = {
      "#  Rank  1 Group  0 Pid  2 on node-a:2:2 [1] NCCL INFO Bootstrap : Using eth0:10.0.0.5<0>\n",
      "#  Rank  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100node-a:2:2 [1] NCCL INFO Using "
      "network IB\n",
      "#  Rank  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100NCCL version 2.19.3+cuda12.2\n",
      "#  Rank  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100#  Rank  2 Group  0 Pid  3 on node-a "
      "device "
      "2 [0x20] NVIDIA A100\n",
      "#  Rank  1 Group  0 Pid  2 on node-a device  1\n",
      "#  Rank  1 Group  0 Pid  2 on\n",
      "#  Rank  1 Group  0 Pid\n",
      "#  Rank  1 Grou\n",
      "node-a:2:2 [1] NCCL INFO Us#  Rank  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100\n",
      "#  Rnk  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100\n",
      "#  Rank  x Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100\n",
      "#  Rank  1 Group  0 Pid  2 on node-a device  1 [0x00] NVIDIA A100<0>\n",
  };
  for (const std::string& line : damaged)
    EXPECT_THAT(import_error({log_of(first + line)}),
                AllOf(HasSubstr("a.log:3: it lists a rank, but not as"), HasSubstr("mend the line")))
        << line;
  EXPECT_EQ(import_error({log_of(first + "node-a:2:2 [1] NCCL INFO Channel 00/02 : 0 1\n" +
                                 rank_line(1, "node-a", 1))}),
            "")
      << "a line between those of ranks is none of them";
}

TEST(ImportRanks, OfADeviceThatHasNoNameAskForIt) {
  const Source log = log_of(rank_line(0, "a", 0, "", "") + rank_line(1, "a", 1, "", ""));
  EXPECT_THAT(import_error({log}), HasSubstr("give --device"));
  EXPECT_EQ(import_error({log}, {.device = "AMD Instinct MI300X"}), "");
}

// Two machines with the same name look like two ranks on one GPU. Only the user knows which it is.
TEST(ImportNodes, ThatShareAHostNameAreAskedFor) {
  const Source log = log_of(rank_line(0, "localhost", 0) + rank_line(1, "localhost", 0));
  EXPECT_THAT(import_error({log}),
              AllOf(HasSubstr("a.log:3: rank 1 is on device 0 of localhost, as rank 0 is"),
                    HasSubstr("--nodes 1"), HasSubstr("--nodes 2")));
  const Imported two = imported_results({log}, {.nodes = 2});
  EXPECT_THAT(two.environment.nodes, ElementsAre("localhost", "localhost#2"));
  EXPECT_FALSE(two.records.front().measures.oversubscribed);
  const Imported one = imported_results({log}, {.nodes = 1});
  EXPECT_THAT(one.environment.nodes, ElementsAre("localhost"));
  EXPECT_TRUE(one.records.front().measures.oversubscribed);
  EXPECT_EQ(imported_results({log}, {.ranks_per_node = 1}).environment.nodes.size(), 2u);
  EXPECT_THAT(import_error({log}, {.nodes = 3}), HasSubstr("give --nodes 1"));
}

TEST(ImportNodes, ThatShareAHostNameHaveTheRanksOfTheirDevices) {
  const Source blocks = log_of(rank_line(0, "gpu", 0) + rank_line(1, "gpu", 1) + rank_line(2, "gpu", 0) +
                               rank_line(3, "gpu", 1));
  EXPECT_THAT(imported_results({blocks}, {.nodes = 2}).environment.rank_nodes,
              ElementsAre("gpu", "gpu", "gpu#2", "gpu#2"));
  const Source in_turn = log_of(rank_line(0, "gpu", 0) + rank_line(1, "gpu", 0) + rank_line(2, "gpu", 1) +
                                rank_line(3, "gpu", 1));
  EXPECT_THAT(imported_results({in_turn}, {.nodes = 2}).environment.rank_nodes,
              ElementsAre("gpu", "gpu#2", "gpu", "gpu#2"));
}

// With CUDA_VISIBLE_DEVICES, each process sees one GPU as number 0, each with a different bus id.
TEST(ImportNodes, AreOneWhereEachProcessSeesItsOwnGpu) {
  const Source log = log_of(rank_line(0, "a", 0, "0000:19:00") + rank_line(1, "a", 0, "0000:3b:00"));
  EXPECT_EQ(imported_results({log}, {}).environment.nodes.size(), 1u);
  EXPECT_FALSE(imported_results({log}, {}).records.front().measures.oversubscribed);
  EXPECT_EQ(imported_results({log}, {.nodes = 2}).environment.nodes.size(), 2u);
}

TEST(ImportNodes, MayHaveDifferentNumbersOfRanks) {
  const Source log = log_of(rank_line(0, "a", 0) + rank_line(1, "a", 1) + rank_line(2, "b", 0));
  const Imported imported = imported_results({log}, {});
  EXPECT_THAT(imported.environment.rank_nodes, ElementsAre("a", "a", "b"));
  EXPECT_EQ(imported_results({log}, {.nodes = 2}).environment.nodes.size(), 2u);
  EXPECT_THAT(import_error({log}, {.nodes = 3}), HasSubstr("3 ranks on 2 nodes, not on 3"));
  EXPECT_THAT(import_error({log}, {.ranks_per_node = 2}), HasSubstr("1 rank on b, not 2"));
}

// Times of aggregated, graph-launched, blocking and misaligned operations cannot be compared with others, so
// they become different points.
TEST(ImportKinds, AreToldApart) {
  const auto run = [](const std::string& more, const std::string& line = "") {
    return Source{
        "a.log",
        kStart +
            ("# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg "
             "iters: " +
             more + "\n") +
            line + rank_line(0, "a", 0) + rank_line(1, "a", 1) + kColumns + kRow + kEnd};
  };
  const Source plain = run("1 validation: 1 graph: 0");
  Source other = run("1 validation: 1 graph: 0 unalign: 0");
  other.name = "b.log";
  EXPECT_EQ(import_error({plain, other}), "");
  EXPECT_EQ(imported_results({plain}, {}).environment.transport, "nccl");
  const std::pair<Source, const char*> kinds[] = {
      {run("4 validation: 1 graph: 0"), "nccl(aggregated=4)"},
      {run("1 validation: 1 graph: 1"), "nccl(graph=true)"},
      {run("1 validation: 1 graph: 0 unalign: 3"), "nccl(unaligned=3)"},
      {run("4 validation: 1 graph: 2",
           "# Blocking Enabled: wait for completion and barrier after each collective \n"),
       "nccl(aggregated=4, graph=true, blocking=true)"},
  };
  for (const auto& [log, transport] : kinds) {
    EXPECT_THAT(import_error({plain, log}), HasSubstr("times of another kind")) << transport;
    const Imported imported = imported_results({log}, {});
    EXPECT_EQ(imported.environment.transport, transport);
    EXPECT_EQ(imported.records.front().point.transport, transport);
    EXPECT_NE((*imported.environment.facts).at("times"),
              (*imported_results({plain}, {}).environment.facts).at("times"));
  }
  Source both = plain;
  both.text += run("4 validation: 1 graph: 0").text;
  EXPECT_THAT(import_error({both}), AllOf(HasSubstr("another kind"), HasSubstr("split the file")));
  EXPECT_EQ(imported_results({kinds[0].first}, {.transport = "rccl", .link = "if"}).environment.transport,
            "rccl(aggregated=4, link=if)");
}

TEST(ImportKinds, OfJsonAreToldApart) {
  const Source json = source_named("nccl-2.19.json");
  const std::pair<const char*, const char*> kinds[] = {
      {"\"aggregated_iterations\":1", "\"aggregated_iterations\":8"},
      {"\"graph\":0", "\"graph\":1"},
      {"\"blocking_collectives\":\"false\"", "\"blocking_collectives\":\"true\""}};
  for (const auto& [from, to] : kinds)
    EXPECT_THAT(import_error({json, replaced(json, from, to)}), HasSubstr("times of another kind")) << to;
  EXPECT_THAT(import_error({replaced(json, "{\"rank\":8", "{\"rank\":0")}),
              HasSubstr("rank 0 is listed twice"));
  EXPECT_THAT(import_error({replaced(json, "{\"rank\":8", "{\"rank\":16")}), HasSubstr("but not rank 8"));
}

// A flag adds what a file does not say. If the file says it, the flag must agree.
TEST(ImportFlags, ThatAFileContradictsAreRefused) {
  const Source csv = source_named("training.csv");
  const Given machine{.device = "NVIDIA H100", .transport = "nccl"};
  const auto with = [&](auto change) {
    Given given = machine;
    change(given);
    return given;
  };
  EXPECT_THAT(import_error({csv}, with([](Given& g) { g.ranks = 8; })),
              AllOf(HasSubstr("training.csv:"), HasSubstr("not 8 as --ranks says")));
  EXPECT_THAT(import_error({csv}, with([](Given& g) { g.operation = "all_gather"; })),
              HasSubstr("training.csv:3: it is training, not all_gather as --operation says"));
  EXPECT_THAT(import_error({csv}, with([](Given& g) { g.ranks_per_node = 4; })),
              HasSubstr("correct --nodes"));
  const Source osu = source_named("osu-7.4-full.txt");
  const Given cpu{.device = "AMD EPYC", .transport = "mpi", .operation = "all_reduce", .ranks = 4};
  EXPECT_THAT(import_error({osu}, cpu), HasSubstr("it is all_gather, not all_reduce as --operation says"));
  const Source log = log_of(rank_line(0, "a", 0) + rank_line(1, "a", 1));
  EXPECT_THAT(import_error({log}, {.transport = "mpi"}), HasSubstr("not mpi as --transport says"));
  EXPECT_EQ(imported_results({log}, {.transport = "rccl"}).environment.transport, "rccl");
  EXPECT_THAT(import_error({log}, {.transport = "nccl 2.2"}), HasSubstr("--transport: 'nccl 2.2'"));
  EXPECT_THAT(import_error({log}, {.transport = "nccl(link=a)", .link = "b"}), HasSubstr("give one of them"));
}

}  // namespace
}  // namespace shardmark::imports

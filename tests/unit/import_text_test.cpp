// Prefixes and control characters that launchers, terminals and editors add to lines are removed, for every
// format.
#include "import_fixture.h"

namespace shardmark::imports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns the source with a prefix before each line, made from the line's number.
template <class Prefix>
Source prefixed(const Source& source, Prefix prefix) {
  Source out{source.name, ""};
  int number = 0;
  for (size_t begin = 0; begin < source.text.size();) {
    const size_t end = std::min(source.text.find('\n', begin), source.text.size());
    out.text +=
        prefix(number++) + source.text.substr(begin, end - begin) + (end < source.text.size() ? "\n" : "");
    begin = end + 1;
  }
  return out;
}

std::string two_digits(int number) { return (number < 10 ? "0" : "") + std::to_string(number); }

using Prefix = std::string (*)(int line);
const std::pair<const char*, Prefix> kPrefixes[] = {
    {"nothing", [](int) { return std::string(); }},
    {"mpirun --tag-output", [](int) { return std::string("[1,0]<stdout>:"); }},
    {"the same, indented", [](int) { return std::string("        [1,0]<stdout>:"); }},
    {"mpirun --timestamp-output",
     [](int i) { return "Tue May  7 09:13:" + two_digits(i % 60) + " 2024[1,0]<stdout>:"; }},
    {"the same around midnight",
     [](int i) {
       return (i < 9 ? "Tue Apr 30 23:59:5" + std::to_string(i) : "Wed May  1 00:00:00") + " 2024<stdout>:";
     }},
    {"prterun", [](int) { return std::string("[prterun-ip-10-0-12-34-12345@1,0]<stdout>: "); }},
    {"prterun in detail",
     [](int) { return std::string("[prterun-a-long-name-of-a-host-7@1,0][node-17:4711]<stdout>: "); }},
    {"srun -l", [](int) { return std::string("0: "); }},
    {"srun -l, padded", [](int) { return std::string("  0: "); }},
    {"mpiexec -prepend-rank", [](int) { return std::string("[0] "); }},
    {"kubectl logs --prefix", [](int) { return std::string("[pod/launcher-x/mpi] "); }},
    {"kubectl logs --timestamps",
     [](int i) {
       return "2024-05-07T09:13:" + two_digits(i % 60) + (i % 3 ? ".12345" + std::to_string(i) : "") + "Z ";
     }},
    {"both",
     [](int i) { return "[pod/launcher-x/mpi] 2024-05-07T09:13:22.1" + std::to_string(i) + "+02:00 "; }},
    {"stern", [](int) { return std::string("\x1b[31mlauncher-x\x1b[0m \x1b[32mmpi\x1b[0m "); }},
    {"docker compose", [](int) { return std::string("\x1b[36mworker-0  |\x1b[0m "); }},
    {"docker compose without colours", [](int) { return std::string("worker-0  | "); }},
    {"Jenkins", [](int i) { return "[2024-05-07T09:13:22." + std::to_string(100 + i) + "Z] "; }},
    {"GitLab", [](int i) { return "2024-05-07T09:13:22." + std::to_string(100 + i) + "Z 00O "; }},
    {"pdsh", [](int) { return std::string("node17: "); }},
    {"journald", [](int i) { return "May 07 09:13:" + two_digits(i % 60) + " node17 srun[4711]: "; }},
    {"torchrun", [](int) { return std::string("[default0]:"); }},
    {"Ray", [](int) { return std::string("(RayWorker pid=4711, ip=10.0.0.5) "); }},
    {"SageMaker", [](int) { return std::string("[1,mpirank:0,algo-1]<stdout>:"); }},
    {"numbers of lines", [](int i) { return std::to_string(i + 1) + "\t"; }},
    {"a mail", [](int) { return std::string("> "); }},
    {"kubectl over mpirun", [](int) { return std::string("[pod/launcher-x/mpi] [1,0]<stdout>:"); }},
};

struct Sample {
  const char* file;
  Given given;
};

TEST(ImportText, IsTheSameBehindEveryPrefix) {
  const Sample samples[] = {
      {"nccl-2.13-two-nodes.log", {.operation = "all_reduce"}},
      {"nccl-2.10-all-gather.log", {.operation = "all_gather"}},
      {"osu-7.4-full.txt", {.ranks = 4}},
      {"osu-5.8.txt", {.ranks = 2}},
      {"imb-2021.6.txt", {}},
      {"mlperf-5.1-cisco.txt", {}},
      {"mlperf-5.1-amd.txt", {.ranks = 8}},
  };
  for (const Sample& sample : samples) {
    const Source source = source_named(sample.file);
    const Contents bare = contents_of(source, sample.given);
    for (const auto& [name, prefix] : kPrefixes) {
      SCOPED_TRACE(std::string(sample.file) + " behind the prefix of " + name);
      const Contents said = contents_of(prefixed(source, prefix), sample.given);
      ASSERT_EQ(said.measured.size(), bare.measured.size());
      for (size_t i = 0; i < bare.measured.size(); ++i) {
        EXPECT_EQ(said.measured[i].line, bare.measured[i].line);
        EXPECT_EQ(said.measured[i].record.measures.step_s, bare.measured[i].record.measures.step_s);
        EXPECT_EQ(said.measured[i].record.point.ranks, bare.measured[i].record.point.ranks);
      }
      EXPECT_EQ(said.warnings, bare.warnings);
      EXPECT_EQ(said.devices, bare.devices);
      EXPECT_EQ(said.rank_nodes, bare.rank_nodes);
      EXPECT_EQ(said.version, bare.version);
      EXPECT_EQ(said.times, bare.times);
    }
  }
}

// The launcher's own lines and those of other ranks and hosts may be in between.
TEST(ImportText, HasPrefixesOfSomeLinesOnly) {
  Source log = prefixed(source_named("osu-7.4-full.txt"), [](int) { return std::string("node-a: "); });
  log.text = "+ mpirun -n 4 osu_allgather -f\nnode-b: Warning: Permanently added 'node-b'\n" + log.text +
             "node-b: bye\n";
  const Contents said = contents_of(log, {.ranks = 4});
  EXPECT_EQ(said.measured.size(), 2u);
  EXPECT_THAT(said.warnings, IsEmpty());
}

TEST(ImportText, NamesAPrefixThatItCannotTakeAway) {
  Source log = source_named("osu-5.8.txt");
  log = replaced(log, "# OSU", "a> # OSU");
  log = replaced(log, "# Size", "b> # Size");
  EXPECT_THAT(
      import_error({log}, {.ranks = 2}),
      AllOf(HasSubstr("osu-5.8.txt: nothing that import knows: line 2 begins with 'a> ' before '# OSU MPI"),
            HasSubstr("take such prefixes away")));
}

std::string in_utf16(const std::string& ascii, bool is_big_endian) {
  std::string out;
  for (const char c : ascii) out += is_big_endian ? std::string{'\0', c} : std::string{c, '\0'};
  return out;
}

TEST(ImportText, MayBeInUtf16AndEndLinesAsItLikes) {
  const Sample samples[] = {{"osu-7.4-full.txt", {.ranks = 4}},
                            {"nccl-2.13-two-nodes.log", {.operation = "all_reduce"}},
                            {"imb-2021.6.txt", {}},
                            {"training.csv", {}},
                            {"training.yaml", {}}};
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.file);
    const Source source = source_named(sample.file);
    const size_t results = contents_of(source, sample.given).measured.size();
    const auto is_read = [&](const std::string& text) {
      const Contents said = contents_of({sample.file, text}, sample.given);
      EXPECT_EQ(said.measured.size(), results) << text.substr(0, 40);
    };
    is_read("\xef\xbb\xbf" + source.text);
    is_read("\xff\xfe" + in_utf16(source.text, false));
    is_read("\xfe\xff" + in_utf16(source.text, true));
    is_read(in_utf16(source.text, false));
    std::string windows, mac = source.text;
    for (const char c : source.text) windows += c == '\n' ? "\r\n" : std::string(1, c);
    std::replace(mac.begin(), mac.end(), '\n', '\r');
    is_read(windows);
    is_read(mac);
  }
  EXPECT_EQ(plain({"a", std::string("\xff\xfe\x3d\xd8\x00\xde\xe9\x00", 8)}).text, "\xf0\x9f\x98\x80\xc3\xa9")
      << "a pair of surrogates, and an e with an accent";
}

TEST(ImportText, SaysWhatElseItMet) {
  const auto met = [](const std::string& text) { return import_error({{"a", text}}); };
  EXPECT_THAT(met(""), HasSubstr("a: nothing that import knows: it is empty"));
  EXPECT_THAT(met("PK\x03\x04..."), HasSubstr("save the sheet as CSV"));
  EXPECT_THAT(met("\x1f\x8b..."), HasSubstr("gunzip"));
  EXPECT_THAT(met("\x89HDF\r\n"), HasSubstr("shardmark report"));
  EXPECT_THAT(met("nothing\n"),
              AllOf(HasSubstr("nothing that import knows; known: csv"), Not(HasSubstr("knows:"))));
}

}  // namespace
}  // namespace shardmark::imports

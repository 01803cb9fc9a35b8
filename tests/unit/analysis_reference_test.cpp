// Tests the reference collection: which studies are admitted, that they contain no names of people or hosts,
// and which references are shown next to the points of a report.
#include <gmock/gmock.h>

#include <regex>

#include "analysis/admission.h"
#include "analysis/frame/launches.h"
#include "analysis/reference/tables.h"
#include "analysis_fixture.h"
#include "schema/published.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kGpu = "NVIDIA H100 80GB HBM3";

// Returns a study with one repeat of a point for each step time, on the four GPUs of one node.
StudyData gpu_study(const std::vector<double>& steps_s, const std::string& host = "host") {
  std::vector<Record> records;
  for (const double step_s : steps_s) {
    Record record = training_record("ddp", 4, 8, step_s);
    record.point.transport = "nccl";
    record.measures.peak_flops = 1e13;
    record.point.repeat = std::ssize(records);
    record.id = point_id(record.point);
    record.started = fmt::format("2026-01-01T00:00:0{}Z on {}", records.size(), host);
    records.push_back(record);
  }
  StudyData study = study_of(records);
  Environment& e = study.environment;
  e.transport = "nccl";
  e.nodes = {host};
  e.rank_nodes = {host, host, host, host};
  e.devices = {kGpu, kGpu, kGpu, kGpu};
  return study;
}

class ReferenceCollection : public ::testing::Test {
 protected:
  std::string written(const StudyData& study, const std::string& name = "reference.h5") {
    write_reference(study, scratch_ / name);
    return scratch_ / name;
  }
  // Returns the study with the path of its file, as if it was published.
  StudyData published(StudyData study) {
    study.path = written(study, "mine.h5");
    return study;
  }
  References beside(const StudyData& mine, const StudyData& reference) {
    return references_for({mine}, {written(reference)});
  }
  ScratchDirectory scratch_;
};

TEST_F(ReferenceCollection, PutsTheSamePointOnTheSameDeviceBeside) {
  const std::vector<StudyData> mine = {gpu_study({0.2, 0.2, 0.2})};
  StudyData other = gpu_study({0.1, 0.1, 0.1}, "elsewhere");
  other.environment.threads_per_rank = 16;  // ranks on GPUs do not compute with threads
  const References references = beside(mine[0], other);
  const auto points = merge_repeats(mine);
  const ReferenceMatches matches(points, references);
  ASSERT_THAT(matches.points, SizeIs(1));
  const Estimate speed = matches.points[0].speed;
  EXPECT_DOUBLE_EQ(speed.value, 0.5);
  EXPECT_LT(speed.low, 0.495);
  EXPECT_GT(speed.high, 0.505);
  const Table table = reference_table(matches.points);
  EXPECT_EQ(cell(table, 0, "study").text, "reference.h5");
  EXPECT_EQ(cell(table, 0, "revision").text, "abc123");
  EXPECT_EQ(cell(table, 0, "speed of the reference").text, "50.0");
  EXPECT_THAT(standing_of(points, references, matches.points, {}),
              Contains(HasSubstr("50 % of the speed of the reference NVIDIA H100 80GB HBM3;")));
  EXPECT_THAT(launches_of(references.studies, OneMachine::not_needed).points, SizeIs(1));
}

TEST_F(ReferenceCollection, NothingElseIsBeside) {
  const StudyData mine = gpu_study({0.2});
  const auto points = merge_repeats({mine});
  const auto says = [&](const StudyData& other) {
    const References references = beside(mine, other);
    EXPECT_THAT(references.studies, IsEmpty());
    return standing_of(points, references, {}, {}).front();
  };
  StudyData other = gpu_study({0.1}, "elsewhere");
  other.environment.devices.assign(4, "NVIDIA H200");
  EXPECT_THAT(says(other), StartsWith("Computing: training reaches "));  // of a machine that nobody measured
  other = gpu_study({0.1}, "elsewhere");
  other.environment.rank_nodes = {"elsewhere", "elsewhere", "beyond", "beyond"};
  EXPECT_THAT(says(other), HasSubstr("but none of these points"));
  other = gpu_study({0.1}, "elsewhere");
  other.records[0].point.training.batch_size = 16;
  EXPECT_THAT(says(other), HasSubstr("but none of these points"));
  other = gpu_study({0.1}, "elsewhere");
  other.records[0].outcome = Outcome::failed;
  EXPECT_THAT(says(other), HasSubstr("but none of these points"));
  EXPECT_THAT(says(mine), HasSubstr("themselves in the reference collection"));
  EXPECT_THAT(says(anonymous(mine, "")), HasSubstr("themselves in the reference collection"));
}

TEST_F(ReferenceCollection, ThreadsOfCpuRanksCount) {
  StudyData mine = gpu_study({0.2}), other = gpu_study({0.1}, "elsewhere");
  for (StudyData* study : {&mine, &other}) {
    study->environment.transport = study->records[0].point.transport = "mpi";
    study->environment.devices.assign(4, "Some CPU");
  }
  EXPECT_THAT(beside(mine, other).studies, SizeIs(1));
  other.environment.threads_per_rank = 4;
  EXPECT_THAT(beside(mine, other).studies, IsEmpty());
}

TEST_F(ReferenceCollection, ADamagedFileIsLeftOut) {
  const StudyData mine = gpu_study({0.2});
  const std::string good = written(gpu_study({0.1}, "elsewhere")), bad = scratch_ / "bad.h5";
  std::string bytes = read_text(good);
  bytes[bytes.size() / 2] ^= 1;
  write_text(bad, bytes);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(references_for({mine}, {bad, good}).studies, SizeIs(1));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("bad.h5"));
}

TEST_F(ReferenceCollection, AdmitsAStudyThatOthersCanRelyOn) {
  const StudyData good = published(gpu_study({0.1, 0.101, 0.1}));
  EXPECT_THAT(reasons_against(good, {}), IsEmpty());
  EXPECT_THAT(reasons_against(good, {good.path}), ElementsAre("in the collection already"));
}

TEST_F(ReferenceCollection, RefusesWithTheReason) {
  const auto reasons = [&](auto change) {
    StudyData study = gpu_study({0.1, 0.101, 0.1});
    change(study);
    return reasons_against(published(study), {});
  };
  EXPECT_THAT(reasons([](StudyData& s) { s.records.pop_back(); }),
              ElementsAre(HasSubstr("too few repeats: 1 point, training gpt2")));
  EXPECT_THAT(reasons([](StudyData& s) { s.records[0].outcome = Outcome::failed; }),
              Contains(HasSubstr("failed: 1 point")));
  EXPECT_THAT(reasons([](StudyData& s) { s.records[0].measures.verified = "unverified: why"; }),
              ElementsAre(HasSubstr("not verified: no training point (1)")));
  EXPECT_THAT(reasons([](StudyData& s) {
                for (Record& record : s.records) record.measures.step_high_s *= 2;
              }),
              ElementsAre(HasSubstr("uncertain: 1 point")));
  EXPECT_THAT(reasons([](StudyData& s) {
                for (Record& record : s.records) record.measures.oversubscribed = true;
              }),
              ElementsAre(HasSubstr("oversubscribed: 1 point")));
  EXPECT_THAT(reasons([](StudyData& s) { s.environment.revision += "-dirty"; }),
              ElementsAre(HasSubstr("revision abc123-dirty")));
  EXPECT_THAT(reasons([](StudyData& s) { s.records.clear(); }), ElementsAre(HasSubstr("no result")));
  EXPECT_THAT(reasons([](StudyData& s) {
                for (Record& record : s.records)
                  record.point.training.data = {"text", {{"files", "/home/alice/*.txt"}}};
              }),
              ElementsAre(HasSubstr("files of its own: 1 point")));
  EXPECT_THAT(reasons([](StudyData& s) {
                for (Record& record : s.records)
                  record.point.training.save = {"full", {{"folder", "/home/alice"}, {"sync", true}}};
              }),
              ElementsAre(HasSubstr("files of its own: 1 point")));
  for (const char* settings : {"NCCL_TOPO_FILE=/home/alice/topo.xml", "NCCL_SOCKET_IFNAME=alice0",
                               "NCCL_ALGO=/home/alice", "OMPI_MCA_coll_tuned_dynamic_rules_filename=/home/a"})
    EXPECT_THAT(reasons([&](StudyData& s) {
                  for (Record& record : s.records) record.point.environment = settings;
                }),
                ElementsAre(HasSubstr("settings of its own: 1 point")))
        << settings;
  for (const char* settings : {"NCCL_ALGO=Ring threads=2", "OMPI_MCA_coll_tuned_allreduce_algorithm=3",
                               "OMPI_MCA_btl_vader_eager_limit=65536", "bind=none"})
    EXPECT_THAT(reasons([&](StudyData& s) {
                  for (Record& record : s.records) record.point.environment = settings;
                }),
                IsEmpty())
        << settings;
  EXPECT_THAT(reasons([](StudyData& s) {
                for (int64_t repeat = 0; repeat < 3; ++repeat) {
                  Record record = collective_record("all_reduce", 4, 1024, true, 1e-5);
                  record.point.repeat = repeat;
                  record.id = point_id(record.point);
                  record.measures.num_wrong = -1;
                  s.records.push_back(record);
                }
              }),
              ElementsAre(HasSubstr("not checked: 1 point, all_reduce")));
  const StudyData study = published(gpu_study({0.1, 0.101, 0.1}));
  write_text(study.path + ".journal", "x");
  EXPECT_THAT(reasons_against(study, {}), Contains(HasSubstr("not published")));
}

// The bytes of the file contain no name of a person or host. Everything that affects the numbers is kept.
TEST_F(ReferenceCollection, HoldsNoNames) {
  StudyData study = gpu_study({0.1, 0.101, 0.1}, "qzhost1");
  Environment& e = study.environment;
  e.nodes = {"qzhost1", "qzhost2"};
  e.rank_nodes = {"qzhost1", "qzhost1", "qzhost2", "qzhost2"};
  e.command_line = "/home/qzalice/bin/shardmark run /home/qzalice/secret.yaml";
  e.suite_text = "# by qzalice on qzhost1\nname: mine\n";
  e.suite_path = "/home/qzalice/qzsuite.yaml";
  *e.versions = {{"kernel", "6.1.0-qzalice"},
                 {"mpi", "Open MPI v4.1.4, package: qzalice@qzhost1"},
                 {"torch", "2.11.0"},
                 {"qzalice", "1"}};
  *e.variables = {{"NCCL_ALGO", "Ring"},
                  {"NCCL_PROTO", "/home/qzalice"},
                  {"NCCL_HOSTID", "qzhost1"},
                  {"SLURM_JOB_NODELIST", "qzhost[1-2]"},
                  {"CUDA_HOME", "/home/qzalice/cuda"}};
  *e.facts = {{"cores_per_node", 8},
              {"peak_flops", {{"bf16", 8e14}}},
              {"preflight", {"qzhost1 is slow"}},
              {"loads", {{"qzhost1", 7.7}}},
              {"placement", {{{"ranks", "0"}, {"bound_by", "qzalice"}}}},
              {"resumed", {{{"nodes", {"qzhost1"}}, {"former_suite", "qzalice"}}}}};
  for (Record& record : study.records) {
    record.reason = "chosen by qzalice on qzhost2";
    record.measures.network_ports = "qzhost1 mlx5_0/1 sent most, 50 %";
    record.started = "2026-01-01T00:00:00Z";
    record.samples = {{"step", 4, 2, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}}};
  }
  study.records.push_back(study.records[0]);
  study.records.back().outcome = Outcome::failed;
  study.records.back().reason = "rank 1 on qzhost1 died";

  const std::string bytes = read_text(written(anonymous(study, "gpu-single.yaml")));
  // Searches for whole words, because shorter texts may appear in a checksum by chance.
  for (const char* name : {"qzhost", "qzalice", "qzsuite", "/home", "secret"})
    EXPECT_EQ(bytes.find(name), std::string::npos) << name;
  const StudyData read = read_study(scratch_ / "reference.h5");
  EXPECT_THAT(read.environment.nodes, ElementsAre("node1", "node2"));
  EXPECT_THAT(read.environment.rank_nodes, ElementsAre("node1", "node1", "node2", "node2"));
  EXPECT_EQ(*read.environment.versions,
            (nlohmann::ordered_json{{"torch", "2.11.0"}, {"mpi", "Open MPI v4.1.4"}, {"kernel", "6.1.0"}}));
  EXPECT_EQ(*read.environment.variables, (nlohmann::ordered_json{{"NCCL_ALGO", "Ring"}}));
  EXPECT_EQ(*read.environment.facts,
            (nlohmann::ordered_json{{"cores_per_node", 8}, {"peak_flops", {{"bf16", 8e14}}}}));
  ASSERT_THAT(read.records, SizeIs(3));
  EXPECT_EQ(read.records[0].measures.step_s, 0.1);
  EXPECT_NE(read.records[0].series("step"), nullptr);
  EXPECT_EQ(reference_name(read), "nvidia-h100-80gb-hbm3-4-gpu-single-2026-01-01.h5");
}

TEST(PublishedRates, EachHasASourceAndIsThereOnce) {
  std::set<std::string> keys;
  for (const PublishedRate& one : published_rates()) {
    EXPECT_GT(one.rate, 0);
    EXPECT_TRUE(std::regex_match(one.date, std::regex("20\\d\\d-\\d\\d-\\d\\d"))) << one.date;
    EXPECT_THAT(one.source, HasSubstr("https://")) << one.device;
    EXPECT_FALSE(one.conditions.empty());
    EXPECT_EQ(one.bytes == 0, one.operation == kMatrixProduct);
    EXPECT_TRUE(keys.insert(fmt::format("{} {} {} {} {} {}", one.device, one.ranks, one.operation, one.type,
                                        one.bytes, one.source))
                    .second);
  }
  EXPECT_THAT(keys, SizeIs(testing::Ge(20)));
}

TEST(PublishedRates, StandBesideMatrixProductsAndCollectives) {
  StudyData study = gpu_study({0.1});
  study.records[0].point.training.precision = "bf16";
  study.records[0].measures.peak_flops = 794.5e12;
  study.records[0].measures.datasheet_flops = 989e12;
  const auto add = [&](int64_t bytes, bool in_place, double gb_s) {
    Record record = collective_record("all_reduce", 8, bytes, in_place, 1e-3);
    record.measures.busbw_gb_s = gb_s;
    study.records.push_back(record);
  };
  add(1 << 20, true, 40);            // no rate is published for this size, and it is not the largest
  add(int64_t{1} << 30, true, 225);  // half of NVLink's 450 GB/s
  add(int64_t{1} << 30, false, 225);
  study.environment.devices.assign(8, kGpu);
  study.environment.rank_nodes.assign(8, "host");
  const auto points = merge_repeats({study});
  const Table table = rates_table(rated_operations(points));
  ASSERT_THAT(table.rows, SizeIs(3));
  EXPECT_EQ(cell(table, 0, "of data sheet").text, "80.3");
  EXPECT_EQ(cell(table, 0, "of published").text, "100.0");
  for (const size_t row : {1, 2}) EXPECT_EQ(cell(table, row, "of data sheet").text, "50.0");
  const bool first_is_in_place = cell(table, 1, "in place").text == "yes";
  EXPECT_EQ(cell(table, first_is_in_place ? 1 : 2, "of published").text, "48.2");
  EXPECT_EQ(cell(table, first_is_in_place ? 2 : 1, "of published").text, "");
  const std::vector<std::string> lines = standing_of(points, {}, {}, rated_operations(points));
  EXPECT_THAT(lines.back(),
              HasSubstr("matrix product bf16: 80 % of the data sheet, 100 % of what was published"));
}

// If the largest message is unreliable, it is marked instead of being replaced by a smaller one.
TEST(PublishedRates, OfADoubtfulMessageAreMarked) {
  std::vector<Record> records = {collective_record("all_reduce", 8, int64_t{1} << 28, true, 1e-3),
                                 collective_record("all_reduce", 8, int64_t{1} << 30, true, 4e-3)};
  records[1].measures.step_low_s = 1e-3;
  records[1].measures.step_high_s = 9e-3;
  StudyData study = study_of(records);
  study.environment.devices.assign(8, kGpu);
  study.environment.rank_nodes.assign(8, "host");
  const std::vector<StudyData> studies = {study};
  const auto points = merge_repeats(studies);
  const Table table = rates_table(rated_operations(points));
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(cell(table, table.rows.size() - 1, "size").text, "1.00 GiB");
  EXPECT_THAT(cell(table, table.rows.size() - 1, "rate").text, testing::EndsWith(" ?"));
  EXPECT_THAT(standing_of(points, {}, {}, rated_operations(points)).back(),
              HasSubstr("all_reduce float32 at 1.00 GiB on 8 ranks (its times have a warning): "));
}

}  // namespace
}  // namespace shardmark

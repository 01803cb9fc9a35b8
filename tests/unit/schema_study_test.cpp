// Tests a study from its creation to publishing and resuming: records are read back unchanged, and invalid
// operations are refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "schema/columns.h"
#include "schema/hdf5.h"
#include "schema/journal.h"
#include "schema/json.h"
#include "schema/older.h"
#include "schema/version.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

void expect_same(const Environment& a, const Environment& b) { EXPECT_EQ(to_json(a), to_json(b)); }

std::vector<Record> mixed_records() {
  std::vector<Record> records = {filled_record(1), Record{}, filled_record(2)};
  records[1].id = "all defaults";
  records[2].measures.loss_last = std::numeric_limits<double>::infinity();
  records[2].measures.loss_first = -std::numeric_limits<double>::infinity();
  records[2].measures.step_s = 0.1 + 0.2;  // needs all 17 digits
  records[2].measures.accuracy = std::numeric_limits<double>::denorm_min();
  records[2].samples.resize(1);
  return records;
}

TEST(Study, EveryFieldSurvivesJournalAndFile) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  {
    Study study = Study::create(path, sample_environment());
    for (const Record& record : mixed_records()) study.append(record);
    expect_records(read_study(path), mixed_records());  // readable while it is written
    expect_records(read_study(path + ".journal"), mixed_records());
    EXPECT_FALSE(std::filesystem::exists(path));
    study.publish();
    EXPECT_THROW(study.append(filled_record(9)), ContractError);
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".journal"));
  EXPECT_FALSE(std::filesystem::exists(path + ".samples"));
  expect_records(read_study(path), mixed_records());
  expect_same(read_study(path).environment, sample_environment());
  for (const Record& record : read_study(path, Load::without_samples).records)
    EXPECT_TRUE(record.samples.empty());
}

TEST(Study, AnEmptyStudyIsAStudy) {
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  EXPECT_TRUE(read_study(scratch / "x.h5").records.empty());
  study.publish();
  EXPECT_TRUE(read_study(scratch / "x.h5").records.empty());
}

// The series needs several chunks, and some points straddle two of them.
TEST(Study, KeepsLongSeries) {
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  std::vector<Record> records;
  for (int64_t i = 0; i < 5; ++i) {
    Record record;
    record.id = std::to_string(i);
    record.samples = {{"step", 2, 20000 + i, {}}};
    for (int64_t k = 0; k < 2 * (20000 + i); ++k)
      record.samples[0].values.push_back(std::sin(static_cast<double>(k + i)));
    study.append(record);
    records.push_back(record);
  }
  study.publish();
  expect_records(read_study(scratch / "x.h5"), records);
}

TEST(Study, ResumesAJournalAndAFile) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  { Study::create(path, sample_environment()).append(filled_record(1)); }
  {
    Study study = Study::resume(path, sample_environment());
    ASSERT_EQ(study.known().size(), 1u);
    EXPECT_TRUE(study.known().contains("record-1"));
    study.append(filled_record(2));
    study.publish();
  }
  Environment later = sample_environment();
  later.command_line = "shardmark run --resume";
  later.nodes = later.rank_nodes = {"other", "other", "others"};  // the same topology on other hosts
  {
    Study study = Study::resume(path, later);
    EXPECT_EQ(study.known().size(), 2u);
    EXPECT_THROW(study.append(filled_record(2)), ContractError);
    study.append(filled_record(3));
    EXPECT_EQ(read_study(path).records.size(), 3u);  // the journal has more than the published file
    study.publish();
  }
  const StudyData data = read_study(path);
  expect_records(data, {filled_record(1), filled_record(2), filled_record(3)});
  EXPECT_EQ(data.environment.command_line, later.command_line);
  EXPECT_EQ(data.environment.started, sample_environment().started);
  EXPECT_EQ(data.environment.nodes, sample_environment().nodes);
  EXPECT_EQ((*data.environment.facts)["resumed"].size(), 2u);
  EXPECT_EQ((*data.environment.facts)["resumed"][1]["nodes"][1], "other");
}

TEST(Study, ResumeOfNothingCreates) {
  const ScratchDirectory scratch;
  Study::resume(scratch / "x.h5", sample_environment()).publish();
  EXPECT_TRUE(read_study(scratch / "x.h5").records.empty());
}

TEST(Study, RefusesWhatExists) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  const auto create = [&] { Study::create(path, sample_environment()); };
  Study::create(path, sample_environment()).append(filled_record(1));
  EXPECT_THAT(usage_error(create),
              HasSubstr("x.h5.journal exists: an unfinished study; go on with --resume"));
  Study::resume(path, sample_environment()).publish();
  EXPECT_THAT(usage_error(create), HasSubstr("x.h5 exists; go on with --resume, or choose another output"));
  EXPECT_EQ(read_study(path).records.size(), 1u);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    EXPECT_EQ(entry.path(), path) << "litter";
}

TEST(Study, RefusesASecondWriter) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  Study first = Study::create(path, sample_environment());
  EXPECT_THAT(usage_error([&] { Study::resume(path, sample_environment()); }),
              HasSubstr("written by another process"));
  EXPECT_THAT(usage_error([&] { Study::create(path, sample_environment()); }), HasSubstr("exists"));
  first.append(filled_record(1));
  first.publish();
  Study second = Study::resume(path, sample_environment());
  EXPECT_THAT(usage_error([&] { Study::resume(path, sample_environment()); }),
              HasSubstr("written by another process"));
  EXPECT_EQ(read_study(path).records.size(), 1u);
}

TEST(Study, FollowsALinkToWhatIsNotPublishedYet) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("x-001.h5", scratch / "x.h5");
  Study study = Study::create(scratch / "x-001.h5", sample_environment());
  study.append(filled_record(1));
  EXPECT_EQ(read_study(scratch / "x.h5").records.size(), 1u);
  study.publish();
  EXPECT_EQ(read_study(scratch / "x.h5").records.size(), 1u);
}

TEST(Study, SaysWhatIsWrongWithThePath) {
  const ScratchDirectory scratch;
  const Environment environment = sample_environment();
  write_text(scratch / "file", "x");
  EXPECT_THAT(usage_error([&] { Study::create(scratch / "none/x.h5", environment); }),
              HasSubstr("No such file or directory; make the directory first: mkdir -p "));
  EXPECT_THAT(usage_error([&] { Study::create(scratch / "file/x.h5", environment); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(usage_error([&] { read_study(scratch / "none.h5"); }), HasSubstr("none.h5: no such study"));
  EXPECT_THAT(usage_error([&] { read_study(scratch / "file"); }),
              HasSubstr("file is damaged, or not a study"));
  EXPECT_THAT(usage_error([&] { read_study(scratch / "."); }), HasSubstr("cannot be read: it is a folder"));
}

TEST(Study, RefusesOtherHdf5FilesAndNewerSchemas) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  { h5::create_file(path); }
  EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5 is an HDF5 file, but not a study"));
  {
    const h5::Id file = h5::create_file(path);
    h5::write_attribute(file, "creator", "shardmark");
    h5::write_attribute(file, "schema_version", "2.0");
  }
  EXPECT_THAT(usage_error([&] { read_study(path); }),
              HasSubstr("x.h5 has schema version 2.0, this program reads up to " + schema_version()));
  EXPECT_THAT(usage_error([&] { Study::resume(path, sample_environment()); }),
              HasSubstr("schema version 2.0"));
  for (const char* none : {"x", "", "1", "1.", ".5", "-1.0", "-0.5", "1.-5", "+1.0", "1.05", "1.5 ",
                           "1.5<script>", "1.5.2", "99999999999.0"})
    EXPECT_THAT(usage_error([&] { require_readable(none, "y.h5"); }),
                HasSubstr("y.h5: '" + std::string(none) + "' is not a schema version"));
  EXPECT_EQ(require_readable("1.99", "y.h5"), 99);
  for (const char* early : {"0.7", "1.0", "1.9"})
    EXPECT_EQ(usage_error([&] { require_readable(early, "y.h5"); }),
              "y.h5 has schema version " + std::string(early) +
                  ", which is older than the first release (1.10); measure it again");
}

// These studies were written by schema 1.10, which called our own collectives over MPI `mpi`.
TEST(Study, TransportsOfSchema110GetTheirNamesOfToday) {
  const auto transport = [](const char* name) {
    const StudyData study = read_study(std::string(SHARDMARK_TEST_DATA) + "/" + name, Load::without_samples);
    EXPECT_EQ(study.records.front().point.transport, study.environment.transport) << name;
    return study.environment.transport;
  };
  EXPECT_EQ(transport("studies/shaped.h5"), "pt2pt");
  EXPECT_EQ(transport("golden/studies/collectives.h5"), "pt2pt");  // a journal
  EXPECT_EQ(transport("golden/studies/import_osu.h5"), "mpi") << "OSU measures the library's collectives";
}

TEST(Study, IdsOfSchema110ThatNameTheTransportChangeWithIt) {
  const auto renewed = [](const char* transport, int minor, bool is_named_by_it) {
    Record record;
    record.point.workload = "collective";
    record.point.transport = transport;
    record.id = is_named_by_it ? point_id(record.point) : "of the suite's default";
    std::string id = record.id;
    Older older(minor, sample_environment());
    older.renew(record);
    older.renew(id);
    EXPECT_EQ(id, record.id) << "lines that name the point";
    EXPECT_EQ(record.id == point_id(record.point), is_named_by_it);
    return record.point.transport;
  };
  Record unknown;
  unknown.point.workload = "of a journal that anyone may have written";
  unknown.point.transport = "mpi";
  Older(10, sample_environment()).renew(unknown);
  EXPECT_EQ(unknown.point.transport, "pt2pt");
  for (const bool is_named_by_it : {false, true}) {
    EXPECT_EQ(renewed("mpi", 10, is_named_by_it), "pt2pt");
    EXPECT_EQ(renewed("mpi", 11, is_named_by_it), "mpi");
    for (const char* other : {"nccl", "hierarchical(form=leader)"})
      EXPECT_EQ(renewed(other, 10, is_named_by_it), other);
  }
}

TEST(Study, AFileThatLacksAColumnOfItsVersionIsDamaged) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  {
    const h5::Id file = h5::create_file(path);
    h5::write_attribute(file, "creator", "shardmark");
    h5::write_attribute(file, "schema_version", schema_version());
    const h5::Id points = h5::create_group(file, "points");
    for (const RecordColumn& column : make_columns())
      if (column.name != "peak_bytes")
        std::visit([&](const auto& values) { h5::write_column(points, column.name, values); }, column.values);
    h5::create_group(file, "samples");
    h5::create_group(file, "environment");
  }
  EXPECT_EQ(usage_error([&] { read_study(path); }), path + " is damaged: column 'peak_bytes' is missing");
}

TEST(Study, JsonIgnoresUnknownKeysAndNamesWrongTypes) {
  nlohmann::ordered_json json = to_json(filled_record(1));
  json["of a newer minor version"] = 1;
  expect_same(record_from_json(to_json(filled_record(1))), record_from_json(json));
  json["ranks"] = "two";
  EXPECT_EQ(usage_error([&] { record_from_json(json); }), "'ranks' has the wrong type: string");
  EXPECT_EQ(usage_error([&] { record_from_json(3); }), "expected a JSON object, found number");
}

TEST(Study, KeepsAReasonThatIsNoUtf8) {
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  Record record;
  record.id = "a";
  record.reason = "cannot open \xff\xfe.bin";
  study.append(record);
  study.publish();
  EXPECT_THAT(read_study(scratch / "x.h5").records.at(0).reason, HasSubstr("cannot open"));
}

TEST(Study, RefusesSamplesThatDoNotFit) {
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  Record record;
  record.samples = {{"step", 2, 3, {1, 2}}};
  EXPECT_THROW(study.append(record), ContractError);
  record.samples = {{"stride", 1, 1, {1}}};
  EXPECT_THROW(study.append(record), ContractError);
  record.samples = {{"step", 1, 1, {1}}, {"step", 1, 1, {1}}};
  EXPECT_THROW(study.append(record), ContractError);
  EXPECT_TRUE(read_study(scratch / "x.h5").records.empty());
}

}  // namespace
}  // namespace shardmark

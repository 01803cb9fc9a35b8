// Tests damaged files of a study. Damage is detected, described in one line, and never affects other records.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "schema/columns.h"
#include "schema/hdf5.h"
#include "schema/seal.h"
#include "schema/version.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

TEST(StudyDamage, AJournalTornAnywhereLosesOnlyItsLastRecord) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  const std::string lines = read_text(path + ".journal"), samples = read_text(path + ".samples");
  const size_t last = lines.rfind('\n', lines.size() - 2) + 1;
  for (size_t size = last; size < lines.size(); ++size) {
    write_text(path + ".journal", lines.substr(0, size));
    write_text(path + ".samples", samples);
    // The remainder is cut in the same way, so it is tested only at some of the sizes.
    ASSERT_EQ(read_study(path).records.size(), 2u) << size;
    if (size % 13 != 0 && size != last && size + 1 != lines.size()) continue;
    Study study = Study::resume(path, sample_environment());
    ASSERT_EQ(study.known().size(), 2u) << size;
    study.append(filled_record(2));
    expect_first_records(read_study(path), 3);
  }
}

TEST(StudyDamage, SamplesThatDoNotMatchDropTheirRecord) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  const std::string samples = read_text(path + ".samples");
  std::string flipped = samples;
  flipped[samples.size() - 5] = static_cast<char>(~flipped[samples.size() - 5]);
  for (const std::string& broken : {samples.substr(0, samples.size() - 1), flipped}) {
    write_text(path + ".samples", broken);
    EXPECT_EQ(read_study(path).records.size(), 2u);
  }
  EXPECT_EQ(Study::resume(path, sample_environment()).known().size(), 2u);
}

TEST(StudyDamage, DamageInTheMiddleCostsOneRecord) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  std::string lines = read_text(path + ".journal");
  lines[lines.find("record-1")] = 'R';
  write_text(path + ".journal", lines);
  Study study = Study::resume(path, sample_environment());
  EXPECT_EQ(study.known().size(), 2u);
  EXPECT_TRUE(study.known().contains("record-0") && study.known().contains("record-2"));
  study.append(filled_record(1));
  study.publish();
  const StudyData data = read_study(path);
  ASSERT_EQ(data.records.size(), 3u);
  expect_same(data.records[2], filled_record(1));
}

TEST(StudyDamage, ADamagedFirstLineOrMissingSamplesAreNamed) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 1);
  const std::string lines = read_text(path + ".journal");
  for (const std::string& text : {std::string(), "x" + lines, lines.substr(lines.find('\n') + 1)}) {
    write_text(path + ".journal", text);
    EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5.journal"));
    EXPECT_THAT(usage_error([&] { Study::resume(path, sample_environment()); }), HasSubstr("x.h5.journal"));
    EXPECT_EQ(read_text(path + ".journal"), text) << "a refused journal is left alone";
  }
  write_text(path + ".journal", lines);
  std::filesystem::remove(path + ".samples");
  EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5.samples, which belongs to"));
  EXPECT_THAT(usage_error([&] { Study::resume(path, sample_environment()); }), HasSubstr("put it back"));
}

TEST(StudyDamage, ATruncatedFileIsOneLine) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  Study::resume(path, sample_environment()).publish();
  const std::string whole = read_text(path);
  for (size_t size = 0; size < whole.size(); size += whole.size() / 50) {
    write_text(path, whole.substr(0, size));
    EXPECT_THAT(usage_error([&] { read_study(path); }),
                HasSubstr(size == 0 ? "x.h5 is empty" : "x.h5 is damaged"));
  }
}

// HDF5 has checksums for its own structures, but not for numbers and texts. Without our seal, most of these
// changes would go unnoticed.
TEST(StudyDamage, EveryFlippedByteOfAFileIsSeen) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  write_journal(path, 1);
  Study::resume(path, sample_environment()).publish();
  const std::string whole = read_text(path);
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 500) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(~flipped[at]);
    write_text(path, flipped);
    EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5 is damaged")) << at;
  }
  write_text(path, whole + "x");
  EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5 is damaged, cut off, or was changed"));
}

// A file that we did not seal is input like any other. It is read or reported as damaged, and never crashes
// the process.
TEST(StudyDamage, EveryFlippedByteUnderAValidSealIsReadOrRefused) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  write_journal(path, 2);
  Study::resume(path, sample_environment()).publish();
  const std::string whole = read_text(path);
  std::vector<size_t> places;
  for (size_t at = kSealBytes; at < whole.size(); at += 1 + whole.size() / 400) places.push_back(at);
  // HDF5 has no checksum for the heaps of texts and trusts their sizes.
  for (size_t heap = 0; (heap = whole.find("GCOL", heap)) != std::string::npos; ++heap)
    for (size_t at = heap; at < std::min(heap + 80, whole.size()); at += 19) places.push_back(at);
  // Runs in a child process, because HDF5 1.10 leaks memory when it refuses a damaged structure, which a
  // sanitizer would report.
  const int status = status_of(in_child([&] {
    int num_refused = 0;
    constexpr int kMasks[] = {0xff, 0x01, 0x80};
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t at = places[i];
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ kMasks[i % 3]);
      write_text(path, flipped);
      seal_file(path);
      try {
        read_study(path);
      } catch (const UsageError& error) {
        ++num_refused;
        EXPECT_THAT(std::string(error.what()), ::testing::ContainsRegex("x.h5.* damaged")) << at;
      }
    }
    EXPECT_GT(num_refused, 30);
    if (::testing::Test::HasFailure()) ::_exit(2);
  }));
  EXPECT_EQ(status, 0);
}

// Writes a study with one point by hand: without one column, or with a given number in a column of integers.
void write_edited(const std::string& path, const std::string& missing, const std::string& column = "",
                  int64_t number = 0) {
  const h5::Id file = h5::create_file(path);
  h5::write_attribute(file, "creator", "shardmark");
  h5::write_attribute(file, "schema_version", schema_version());
  Record record;
  record.id = "a";
  record.point.workload = "collective";
  record.point.collective.operation = "all_reduce";
  record.point.collective.bytes = 8;
  std::vector<RecordColumn> columns = make_columns();
  append_row(columns, record);
  const h5::Id points = h5::create_group(file, "points");
  for (RecordColumn& one : columns) {
    if (one.name == missing) continue;
    if (one.name == column) std::get<std::vector<int64_t>>(one.values) = {number};
    std::visit([&](const auto& values) { h5::write_column(points, one.name, values); }, one.values);
  }
  h5::create_group(file, "samples");
  h5::create_group(file, "environment");
}

TEST(StudyDamage, AMissingColumnIsNamed) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  write_edited(path, "");
  EXPECT_EQ(read_study(path).records.size(), 1u);
  for (const RecordColumn& column : make_columns()) {
    if (column.name == "id") continue;  // the number of points follows from this column
    write_edited(path, column.name);
    EXPECT_THAT(usage_error([&] { read_study(path); }),
                HasSubstr("x.h5 is damaged: column '" + column.name + "' is missing"));
  }
}

TEST(StudyDamage, NumbersThatNoRunHasAreNamed) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  const std::pair<const char*, int64_t> impossible[] = {
      {"ranks", 0}, {"ranks", -1}, {"ranks", int64_t{1} << 40}, {"bytes", -8}, {"bytes", 0}, {"repeat", -1}};
  for (const auto& [column, number] : impossible) {
    const std::string words = fmt::format("{} is {}, which no run has", column, number);
    write_edited(path, "", column, number);
    EXPECT_THAT(usage_error([&] { read_study(path); }), HasSubstr("x.h5 is damaged: " + words));
  }
  std::filesystem::remove(path);
  Record record = filled_record(1);
  record.point.ranks = 0;
  Study::create(path, sample_environment()).append(record);
  EXPECT_THAT(usage_error([&] { read_study(path); }),
              HasSubstr("x.h5.journal:2 is not a line of a journal: ranks is 0, which no run has"));
}

}  // namespace
}  // namespace shardmark

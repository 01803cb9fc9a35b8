// What kills, full disks and damaged files may do to a study: never lose what append() returned for.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>

#include "base/stats.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

// Runs work in a child process, which leaves without destructors. Returns its process id.
template <class Work>
pid_t in_child(Work work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 1;
  try {
    work();
    status = 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(status);
}

int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// Every record there is whole, and they are the first ones in order.
void expect_first_records(const StudyData& data, size_t at_least) {
  EXPECT_GE(data.records.size(), at_least);
  for (size_t i = 0; i < data.records.size(); ++i)
    expect_same(filled_record(static_cast<int64_t>(i)), data.records[i]);
}

// A study of `count` records in a journal.
void write_journal(const std::string& path, int64_t count) {
  Study study = Study::create(path, sample_environment());
  for (int64_t i = 0; i < count; ++i) study.append(filled_record(i));
}

TEST(StudyFaults, AJournalTornAnywhereLosesOnlyItsLastRecord) {
  const ScratchDirectory scratch(memory_directory());
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  const std::string lines = read_text(path + ".journal"), samples = read_text(path + ".samples");
  const size_t last = lines.rfind('\n', lines.size() - 2) + 1;
  for (size_t size = last; size < lines.size(); ++size) {
    write_text(path + ".journal", lines.substr(0, size));
    write_text(path + ".samples", samples);
    ASSERT_EQ(read_study(path).records.size(), 2u) << size;
    if (size % 13 != 0 && size != last && size + 1 != lines.size())
      continue;  // what is left is cut the same way
    Study study = Study::resume(path, sample_environment());
    ASSERT_EQ(study.finished().size(), 2u) << size;
    study.append(filled_record(2));
    expect_first_records(read_study(path), 3);
  }
}

TEST(StudyFaults, SamplesThatDoNotMatchDropTheirRecord) {
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
  EXPECT_EQ(Study::resume(path, sample_environment()).finished().size(), 2u);
}

TEST(StudyFaults, DamageInTheMiddleCostsOneRecord) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  std::string lines = read_text(path + ".journal");
  lines[lines.find("record-1")] = 'R';
  write_text(path + ".journal", lines);
  Study study = Study::resume(path, sample_environment());
  EXPECT_EQ(study.finished().size(), 2u);
  EXPECT_TRUE(study.finished().contains("record-0") && study.finished().contains("record-2"));
  study.append(filled_record(1));
  study.publish();
  const StudyData data = read_study(path);
  ASSERT_EQ(data.records.size(), 3u);
  expect_same(data.records[2], filled_record(1));
}

TEST(StudyFaults, PublishingRefusesToLoseARecord) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  Study study = Study::resume(path, sample_environment());
  const std::string samples = read_text(path + ".samples");
  write_text(path + ".samples", samples.substr(0, samples.size() - 1));  // a disk that forgets
  EXPECT_THAT(usage_error([&] { study.publish(); }),
              HasSubstr("x.h5.journal: 2 of 3 records can be read back"));
  write_text(path + ".samples", samples);
  study.publish();
  expect_first_records(read_study(path), 3);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(StudyFaults, ADamagedFirstLineOrMissingSamplesAreNamed) {
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

TEST(StudyFaults, ATruncatedFileIsOneLine) {
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

// HDF5 checks its own structures, but neither numbers nor texts: without the seal most of these would be
// read.
TEST(StudyFaults, EveryFlippedByteOfAFileIsSeen) {
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

// A child appends and tells the number of each append that returned; it is killed at a random moment.
TEST(StudyFaults, KilledWritersLoseNothingThatWasAppended) {
  std::mt19937 random(1);
  size_t most = 0;
  for (int round = 0; round < 60; ++round) {
    const ScratchDirectory scratch;
    const std::string path = scratch / "x.h5";
    Study::create(path, sample_environment());  // and let go of it
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = in_child([&] {
      Study study = Study::resume(path, sample_environment());
      for (int64_t i = 0;; ++i) {
        study.append(filled_record(i));
        if (::write(pipe[1], "x", 1) != 1) return;
      }
    });
    ::close(pipe[1]);
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 60000)(random));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(child)));
    size_t returned = 0;
    for (char byte; ::read(pipe[0], &byte, 1) == 1;) ++returned;
    ::close(pipe[0]);
    most = std::max(most, returned);
    expect_first_records(read_study(path), returned);
    Study study = Study::resume(path, sample_environment());  // no lock is left behind
    study.append(filled_record(static_cast<int64_t>(study.finished().size())));
    expect_first_records(read_study(path), returned + 1);
  }
  EXPECT_GT(most, 1u) << "no kill came late enough to mean anything";
}

// A child turns the published file into a journal, appends one record and publishes, over and over.
TEST(StudyFaults, KillsWhilePublishingAndResumingLoseNothing) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 20);
  std::mt19937 random(2);
  size_t before = 20;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = in_child([&] {
      for (;;) {
        Study study = Study::resume(path, sample_environment());
        study.append(filled_record(static_cast<int64_t>(study.finished().size())));
        study.publish();
      }
    });
    ::usleep(std::uniform_int_distribution<useconds_t>(1000, 80000)(random));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(child)));
    const StudyData data = read_study(path);
    expect_first_records(data, before);
    before = data.records.size();
  }
  EXPECT_GT(before, 25u) << "no kill came late enough to mean anything";
}

// Reads while another process appends, publishes and resumes: always a whole study that only grows.
TEST(StudyFaults, ReadersNeverSeeHalfAStudy) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 1);
  const pid_t child = in_child([&] {
    for (int64_t i = 1; i < 40;) {
      Study study = Study::resume(path, sample_environment());
      for (int k = 0; k < 4; ++k) study.append(filled_record(i++));
      study.publish();
    }
  });
  size_t before = 1;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const StudyData data = read_study(path);
    expect_first_records(data, before);
    before = data.records.size();
  }
  EXPECT_EQ(status, 0);
  expect_first_records(read_study(path), 41);
}

// A file-size limit stands for a full disk: the same calls fail, in the same places.
TEST(StudyFaults, AFullDiskKeepsWhatWasAppended) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 2);
  const auto journal_bytes = static_cast<rlim_t>(std::filesystem::file_size(path + ".journal"));
  for (rlim_t room = 0; room < 20000; room += 1111) {
    const int status = status_of(in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      Study study = Study::resume(path, sample_environment());
      const rlimit limit = {journal_bytes + room, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      size_t appended = study.finished().size();
      const std::string message = usage_error([&] {
        for (;; ++appended) study.append(filled_record(static_cast<int64_t>(appended)));
      });
      EXPECT_THAT(message, HasSubstr("cannot write " + path +
                                     ".journal: File too large; what was recorded before is kept"));
      expect_first_records(read_study(path), appended);
      if (::testing::Test::HasFailure()) ::_exit(2);
    }));
    EXPECT_EQ(status, 0) << room;
    expect_first_records(read_study(path), 2);
  }
}

TEST(StudyFaults, PublishingOnAFullDiskKeepsTheJournal) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 5);
  const int status = status_of(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    Study study = Study::resume(path, sample_environment());
    const rlimit limit = {20000, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = usage_error([&] { study.publish(); });
    EXPECT_THAT(message, HasSubstr("cannot write " + path));
    EXPECT_THAT(message, HasSubstr("File too large; what was recorded is kept in its journal"));
    if (::testing::Test::HasFailure()) ::_exit(2);
    ::exit(0);  // HDF5 closes itself on the way out, and must not spoil the status
  }));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  Study::resume(path, sample_environment()).publish();
  expect_first_records(read_study(path), 5);
}

// Median over appends `from` to `to`. In memory, so that it is our own cost and not that of a disk others
// use.
double seconds_per_append(Study& study, int64_t from, int64_t to) {
  std::vector<double> seconds;
  for (int64_t i = from; i < to; ++i) {
    const Record record = filled_record(i);
    const auto start = std::chrono::steady_clock::now();
    study.append(record);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(seconds);
}

TEST(StudyFaults, AppendingCostsTheSameAfterTenThousandRecords) {
  const ScratchDirectory scratch(memory_directory());
  Study study = Study::create(scratch / "x.h5", sample_environment());
  const double first = seconds_per_append(study, 0, 1000);
  seconds_per_append(study, 1000, 9000);
  EXPECT_LE(seconds_per_append(study, 9000, 10000), 3 * first);
  study.publish();
  expect_first_records(read_study(scratch / "x.h5"), 10000);
}

}  // namespace
}  // namespace shardmark

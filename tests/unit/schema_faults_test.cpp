// Tests kills and full disks: a record for which append() returned is never lost.
#include <gmock/gmock.h>
#include <sys/resource.h>
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

TEST(StudyFaults, PublishingRefusesToLoseARecord) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 3);
  Study study = Study::resume(path, sample_environment());
  const std::string samples = read_text(path + ".samples");
  write_text(path + ".samples", samples.substr(0, samples.size() - 1));  // a disk that lost data
  EXPECT_THAT(usage_error([&] { study.publish(); }),
              HasSubstr("x.h5.journal: 2 of 3 records can be read back"));
  write_text(path + ".samples", samples);
  study.publish();
  expect_first_records(read_study(path), 3);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

// A child process appends records and reports each append that returned. It is killed at a random moment.
TEST(StudyFaults, KilledWritersLoseNothingThatWasAppended) {
  std::mt19937 random(1);
  size_t most = 0;
  const ScratchDirectory first;
  write_journal(first / "x.h5", 1);
  const auto start = std::chrono::steady_clock::now();
  Study::resume(first / "x.h5", sample_environment()).append(filled_record(1));
  const std::chrono::duration<double, std::micro> once = std::chrono::steady_clock::now() - start;
  // The moments are scaled to the speed of the disk.
  std::uniform_real_distribution<double> moment(0, std::max(60000.0, 12 * once.count()));
  for (int round = 0; round < 60; ++round) {
    const ScratchDirectory scratch;
    const std::string path = scratch / "x.h5";
    Study::create(path, sample_environment());  // create the study and release its lock
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
    ::usleep(static_cast<useconds_t>(moment(random)));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(child)));
    size_t returned = 0;
    for (char byte; ::read(pipe[0], &byte, 1) == 1;) ++returned;
    ::close(pipe[0]);
    most = std::max(most, returned);
    expect_first_records(read_study(path), returned);
    Study study = Study::resume(path, sample_environment());  // the lock was released
    study.append(filled_record(static_cast<int64_t>(study.known().size())));
    expect_first_records(read_study(path), returned + 1);
  }
  EXPECT_GT(most, 1u) << "no kill came late enough to mean anything";
}

// A child process repeatedly turns the published file into a journal, appends a record and publishes.
TEST(StudyFaults, KillsWhilePublishingAndResumingLoseNothing) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "x.h5";
  write_journal(path, 20);
  const auto grow = [&] {
    Study study = Study::resume(path, sample_environment());
    study.append(filled_record(static_cast<int64_t>(study.known().size())));
    study.publish();
  };
  const auto start = std::chrono::steady_clock::now();
  grow();
  const std::chrono::duration<double, std::micro> once = std::chrono::steady_clock::now() - start;
  std::uniform_real_distribution<double> moment(0, 6 * once.count());
  std::mt19937 random(2);
  size_t before = 21;
  for (int round = 0; round < 25; ++round) {
    const pid_t child = in_child([&] {
      for (;;) grow();
    });
    ::usleep(static_cast<useconds_t>(moment(random)));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(child)));
    const StudyData data = read_study(path);
    expect_first_records(data, before);
    before = data.records.size();
  }
  EXPECT_GT(before, 25u) << "no kill came late enough to mean anything";
}

// Reads the study while another process appends, publishes and resumes. Every reader sees a complete study
// that only grows.
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

// A limit on the size of files stands in for a full disk, because it makes the same calls fail at the same
// places.
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
      size_t appended = study.known().size();
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
    ::exit(0);  // HDF5 closes its files at exit, which must not change the status
  }));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  Study::resume(path, sample_environment()).publish();
  expect_first_records(read_study(path), 5);
}

// Returns the median time of the appends from `from` to `to`. The study is in memory, so that this is our own
// cost and not that of a shared disk.
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

// Shared by the tests of schema/: a temporary directory, and records in which no field has its default value.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "schema/fields.h"
#include "schema/stored.h"
#include "schema/study.h"

namespace shardmark {

class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent = std::filesystem::temp_directory_path()) {
    std::string name = parent + "/shardmark-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs `work` in a child process that exits without calling destructors. Returns its process id.
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

inline int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// Returns a directory in memory, where a sync costs nothing and other processes do not slow us down.
inline std::string memory_directory() {
  return std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Gives a field a value that depends on `number` and differs from the default and from the neighbouring
// fields.
inline void fill(std::string& member, int64_t number) {
  member = "text \"" + std::to_string(number) + "\"\n\tµ, (x)";
}
inline void fill(int64_t& member, int64_t number) { member = (int64_t{1} << 53) + number; }
inline void fill(double& member, int64_t number) { member = static_cast<double>(number) + 0.1; }
inline void fill(bool& member, int64_t) { member = !member; }
inline void fill(Outcome& member, int64_t) { member = Outcome::timed_out; }
inline void fill(Choice& member, int64_t number) {
  member = {"choice" + std::to_string(number), {{"whole", number}, {"rate", 0.1}, {"on", true}}};
  member.options["text"] = "a, (b) = \"c\" 7";
  member.options["word"] = "full";
}

// Returns a record in which all fields are set. `number` also distinguishes the records of a study.
inline Record filled_record(int64_t number) {
  Record record;
  visit_fields(record, [field = number](const char*, const char*, const char*, auto& member) mutable {
    fill(member, ++field);
  });
  record.id = "record-" + std::to_string(number);
  record.point.ranks = 2 + number % 7;  // a value that a run can have; the reader checks it
  record.point.repeat = 1 + number % 5;
  for (const SeriesInfo& info : kSeries) {
    const bool one_column = info.name == "peak";
    if (info.name == "optimizer") continue;  // the point lacks this series
    Series series{std::string(info.name), 2, one_column ? 1 : 3 + number % 2, {}};
    for (int64_t i = 0; i < series.rows * series.columns; ++i)
      series.values.push_back(static_cast<double>(number) + 0.001 * static_cast<double>(i));
    record.samples.push_back(series);
  }
  return record;
}

inline bool same(double a, double b) { return a == b || (a != a && b != b); }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

// Compares every field of the table, and the samples.
inline void expect_same(const Record& a, const Record& b) {
  Record copy = b;
  std::vector<std::string> different;
  visit_fields(a, [&](const char* name, const char*, const char*, const auto& left) {
    visit_fields(copy, [&](const char* other, const char*, const char*, const auto& right) {
      if constexpr (std::is_same_v<decltype(left), decltype(right)>) {
        if (std::string_view(name) == other && !same(left, right)) different.push_back(name);
      }
    });
  });
  EXPECT_TRUE(different.empty()) << "differs: " << different.front();
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (const Series& left : a.samples) {
    const Series* right = b.series(left.name);
    ASSERT_NE(right, nullptr) << left.name;
    EXPECT_EQ(left.rows, right->rows);
    EXPECT_EQ(left.columns, right->columns);
    EXPECT_EQ(left.values, right->values) << left.name;
  }
}

inline void expect_records(const StudyData& data, const std::vector<Record>& records) {
  ASSERT_EQ(data.records.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) expect_same(records[i], data.records[i]);
}

inline Environment sample_environment() {
  Environment environment;
  environment.command_line = "shardmark run suites/quick.yaml";
  environment.revision = "abc123";
  environment.suite_text = "name: quick\n# µ\n";
  environment.suite_path = "suites/quick.yaml";
  environment.started = "2026-01-01T00:00:00Z";
  environment.transport = "mpi";
  environment.world_ranks = 3;
  environment.order_seed = 7;
  environment.threads_per_rank = 2;
  environment.nodes = {"n1", "n2"};
  environment.devices = {"cpu", "cpu", "cpu"};
  environment.rank_nodes = {"n1", "n1", "n2"};
  *environment.versions = {{"torch", "2.11.0"}, {"hdf5", "1.10.8"}};
  *environment.variables = {{"OMP_NUM_THREADS", "2"}};
  *environment.facts = {{"cores", 4}, {"peak_flops", 1.5e11}};
  return environment;
}

// Returns the message of the UsageError that `action` throws, which must be a single line.
template <class Action>
std::string usage_error(Action action) {
  try {
    action();
  } catch (const UsageError& error) {
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << "no UsageError";
  return "";
}

// Expects that all records are complete and are the first ones, in order.
inline void expect_first_records(const StudyData& data, size_t at_least) {
  EXPECT_GE(data.records.size(), at_least);
  for (size_t i = 0; i < data.records.size(); ++i)
    expect_same(filled_record(static_cast<int64_t>(i)), data.records[i]);
}

// Writes a study of `count` records as a journal.
inline void write_journal(const std::string& path, int64_t count) {
  Study study = Study::create(path, sample_environment());
  for (int64_t i = 0; i < count; ++i) study.append(filled_record(i));
}

}  // namespace shardmark

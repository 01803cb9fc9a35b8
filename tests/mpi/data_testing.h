// Shared by the tests of data sources: a folder of files, functions that make sources, and the text of an
// error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "data/source.h"

namespace shardmark {

using Kind = specs::SampleShape::Kind;
namespace fs = std::filesystem;
const specs::SampleShape kCifarImage = {Kind::image, {3, 32, 32}, 10};

// Provides a folder of files that is deleted after the test.
class DataFiles : public ::testing::Test {
 protected:
  DataFiles() { fs::create_directories(folder_); }
  ~DataFiles() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  const fs::path folder_ = fs::temp_directory_path() / ("shardmark-data-" + std::to_string(::getpid()));
};

inline std::unique_ptr<DataSource> source_of(const std::string& name, const Options& options,
                                             const specs::SampleShape& sample,
                                             at::ScalarType dtype = at::kFloat, int64_t seed = 1) {
  return make_source({name, options}, {sample, dtype, seed});
}

inline std::vector<Draw> first(int64_t count, int64_t epoch = 0) {
  std::vector<Draw> draws;
  for (int64_t i = 0; i < count; ++i) draws.push_back({i, epoch});
  return draws;
}

inline bool same(const Batch& a, const Batch& b) {
  return at::equal(a.inputs, b.inputs) && at::equal(a.targets, b.targets);
}

// Returns the message of the UsageError that `body` throws, which must be a single line.
inline std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
    return error.what();
  }
  return "accepted";
}

// Returns the message of the error that making this source throws.
inline std::string refusal(const std::string& name, const Options& options,
                           const specs::SampleShape& sample) {
  return refusal([&] { source_of(name, options, sample); });
}

}  // namespace shardmark

// The names that suites may use, the names in the registries, and the names of source files agree.
// RANKS 1
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "data/source.h"
#include "executor/optim/optimizer.h"
#include "executor/reductions/reduction.h"
#include "models/model.h"
#include "specs/specs.h"
#include "strategies/reductions/reduction.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

using Names = std::set<std::string>;

template <class Table>
Names keys(const Table& table) {
  Names names;
  for (const auto& [name, entry] : table) {
    EXPECT_FALSE(entry.description.empty()) << name;
    names.insert(name);
  }
  return names;
}

template <class Entry>
Names registered() {
  return keys(Registry<Entry>::instance().entries());
}

// Returns the names, without extension, of the files in a folder that register an entry of this type.
Names registering_files(const std::string& folder, const std::string& entry_type) {
  Names stems;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(SHARDMARK_SOURCE_DIR) + "/src/" + folder)) {
    if (file.path().extension() != ".cpp") continue;
    std::ostringstream content;
    content << std::ifstream(file.path()).rdbuf();
    if (content.str().find(fmt::format("Registration<{}>", entry_type)) != std::string::npos)
      stems.insert(file.path().stem().string());
  }
  return stems;
}

// A file has the name of what it registers. One file may register a family (gpt2.cpp: gpt2, gpt2_medium,
// ...).
void expect_files_hold(const std::string& folder, const std::string& entry_type, const Names& names) {
  const Names stems = registering_files(folder, entry_type);
  for (const std::string& stem : stems) EXPECT_TRUE(names.contains(stem)) << folder << "/" << stem << ".cpp";
  for (const std::string& name : names) {
    const bool found = std::any_of(stems.begin(), stems.end(), [&](const std::string& stem) {
      return name == stem || name.starts_with(stem + "_");
    });
    EXPECT_TRUE(found) << name << " has no file in src/" << folder;
  }
}

TEST(Registry, ModelsHaveATableAndBlocks) {
  EXPECT_EQ(registered<ModelEntry>(), registered<specs::ModelSpec>());
  expect_files_hold("models", "ModelEntry", registered<ModelEntry>());
  expect_files_hold("specs/models", "ModelSpec", registered<specs::ModelSpec>());
}

TEST(Registry, StrategiesHaveAFile) {
  expect_files_hold("strategies", "Strategy", registered<strategies::Strategy>());
}

// A reduction that only starts collectives has no kernels.
TEST(Registry, ReductionsHaveAFileAndKernels) {
  Names reductions = registered<strategies::Reduction>();
  expect_files_hold("strategies/reductions", "Reduction", reductions);
  EXPECT_EQ(reductions.erase("plain"), 1u);
  EXPECT_EQ(registered<KernelsEntry>(), reductions);
  expect_files_hold("executor/reductions", "KernelsEntry", reductions);
}

TEST(Registry, DataSourcesHaveASpecAndAFile) {
  EXPECT_EQ(registered<DataEntry>(), keys(specs::data_specs()));
  expect_files_hold("data", "DataEntry", registered<DataEntry>());
}

TEST(Registry, OptimizersHaveASpecAndAFile) {
  EXPECT_EQ(registered<OptimizerEntry>(), keys(specs::optimizer_specs()));
  expect_files_hold("executor/optim", "OptimizerEntry", registered<OptimizerEntry>());
}

}  // namespace
}  // namespace shardmark

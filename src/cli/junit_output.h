// --junit FILE: writes the findings of a command as test results, for CI.
#pragma once

#include <fmt/chrono.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <string>

#include "analysis/render/junit.h"
#include "base/node.h"
#include "cli/table_output.h"
#include "schema/file.h"

namespace shardmark {

inline constexpr const char* kNameJUnit = "name a writable file: --junit FILE";

inline CLI::Option* add_junit_flag(CLI::App& app, std::string& path) {
  return app.add_option("--junit", path, "write the verdicts as test results in JUnit's XML, for CI");
}

// Checks before the work whether the file may be written. An existing file may be replaced if `overwrite` is
// set. An empty path means that no file is wanted.
inline void check_junit(const std::string& path, bool overwrite, const std::vector<std::string>& inputs) {
  if (path.empty()) return;
  require_free(path, overwrite, inputs);
  require_writable(path, kNameJUnit);
}

// Says where and when these results were found out.
inline void sign(JUnitSuite& suite) {
  suite.host = host_name();
  suite.time = fmt::format("{:%FT%T}", fmt::gmtime(std::time(nullptr)));
}

inline void write_junit(const std::string& path, JUnitSuite suite) {
  if (path.empty()) return;
  sign(suite);
  write_whole(path, kNameJUnit, [&](std::ostream& out) { out << to_junit(suite); });
}

}  // namespace shardmark

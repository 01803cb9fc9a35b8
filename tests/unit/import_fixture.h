// Shared by the tests of import: reads files of tests/data/import, as they are or with a part replaced.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "import/plain_text.h"
#include "import/results.h"

namespace shardmark::imports {

inline Source source_named(const std::string& name) {
  std::ifstream file(std::string(SHARDMARK_TEST_DATA "/import/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return {name, text.str()};
}

inline Source replaced(Source source, const std::string& from, const std::string& to) {
  const size_t at = source.text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  source.text.replace(at, from.size(), to);
  return source;
}

inline Contents contents_of(const Source& source, const Given& given = {}) {
  const Source text = plain(source);
  return format_of(text).second.read(text, given);
}

// Returns the message of the UsageError that `work` throws, or "" if it throws none.
template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

inline std::string import_error(const std::vector<Source>& sources, const Given& given = {}) {
  return error_of([&] { imported_results(sources, given); });
}

}  // namespace shardmark::imports

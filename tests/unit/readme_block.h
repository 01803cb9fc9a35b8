// Checks parts of pages that tests recompute: rows of the table in analysis/predict/README.md, and blocks of
// analysis/README.md and analysis/COLUMNS.md, which stand between
// <!-- NAME -->
// and
// <!-- end of NAME -->.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "schema_fixture.h"

namespace shardmark {

// Expects this text in the block. If it differs, the failure names a corrected copy of the page.
inline void expect_block(const std::string& page, const std::string& name, const std::string& text) {
  const std::string path = SHARDMARK_SOURCE_DIR "/analysis/" + page, readme = read_text(path);
  const std::string begin = "<!-- " + name + " -->\n", end = "<!-- end of " + name + " -->";
  const size_t from = readme.find(begin), to = readme.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << name;
  const size_t start = from + begin.size();
  if (readme.substr(start, to - start) == text) return;
  const auto actual = std::filesystem::temp_directory_path() / ("shardmark-analysis-" + name + ".md");
  std::ofstream(actual, std::ios::binary) << readme.substr(0, start) << text << readme.substr(to);
  FAIL() << "the block '" << name << "' changed; if it reads well: cp " << actual << " " << path;
}

inline std::string predict_readme() { return read_text(SHARDMARK_SOURCE_DIR "/analysis/predict/README.md"); }

inline void expect_row_of_predict_readme(const std::string& what, const std::string& found) {
  const std::string row = "| " + what + " | " + found + " |\n";
  EXPECT_NE(predict_readme().find(row), std::string::npos)
      << "analysis/predict/README.md lacks the row " << row;
}

}  // namespace shardmark

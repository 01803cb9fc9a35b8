// A block of analysis/README.md that the program knows: between <!-- NAME --> and <!-- end of NAME -->.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "schema_fixture.h"

namespace shardmark {

// The block is this text; where it is not, the failure names a copy of the README that holds it.
inline void expect_readme_block(const std::string& name, const std::string& text) {
  const std::string path = SHARDMARK_SOURCE_DIR "/analysis/README.md", readme = read_text(path);
  const std::string begin = "<!-- " + name + " -->\n", end = "<!-- end of " + name + " -->";
  const size_t from = readme.find(begin), to = readme.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << name;
  const size_t start = from + begin.size();
  if (readme.substr(start, to - start) == text) return;
  const auto actual = std::filesystem::temp_directory_path() / ("shardmark-analysis-README-" + name + ".md");
  std::ofstream(actual, std::ios::binary) << readme.substr(0, start) << text << readme.substr(to);
  FAIL() << "the block '" << name << "' changed; if it reads well: cp " << actual << " " << path;
}

}  // namespace shardmark

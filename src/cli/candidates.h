// What may be typed where an option takes a value, as far as the program knows: for `completion`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace shardmark {

struct Candidates {
  enum class Kind { words, suites, run_flags };  // run_flags: behind --, the flags of `run`
  Kind kind = Kind::words;
  std::function<std::vector<std::string>()> words = {};  // called when they are asked for; empty: none
};

// The option must outlive the program's last look at it. Returns it.
CLI::Option* offer(CLI::Option* option, Candidates candidates);
// Of a table's rows.
template <class Rows>
std::vector<std::string> names_in(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}
// nullptr: nothing was offered.
const Candidates* offered(const CLI::Option* option);

}  // namespace shardmark

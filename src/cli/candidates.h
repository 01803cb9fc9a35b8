// The values that an option may take, as far as the program knows them; used by `--completion`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace shardmark {

struct Candidates {
  enum class Kind { words, suites, run_flags };  // run_flags: the flags of `run` after --
  Kind kind = Kind::words;
  std::function<std::vector<std::string>()> words = {};  // called when needed; empty: no words
};

// Registers the candidates of an option, which must live until the program's last use of them. Returns the
// option.
CLI::Option* offer(CLI::Option* option, Candidates candidates);
// The names in a table's rows.
template <class Rows>
std::vector<std::string> names_in(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}
// Returns nullptr if no candidates were registered.
const Candidates* offered(const CLI::Option* option);

}  // namespace shardmark

// The result of a test of links, as text.
#pragma once

#include <string>
#include <vector>

namespace shardmark::doctor {

struct Verdicts {
  std::string head = {};               // how it was measured
  std::vector<std::string> slow = {};  // who is slow, a line each
  // Other facts: how far pairs differ, what was left out.
  std::vector<std::string> notes = {};
  std::vector<std::string> wrong = {};  // whose data arrive damaged, a line each
};

}  // namespace shardmark::doctor

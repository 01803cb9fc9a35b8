// What a test of links found.
#pragma once

#include <string>
#include <vector>

namespace shardmark::doctor {

struct Verdicts {
  std::string head = {};                // how it was measured
  std::vector<std::string> slow = {};   // who is slow, a line each
  std::vector<std::string> notes = {};  // what else is to know: how far pairs differ, what was left out
};

}  // namespace shardmark::doctor

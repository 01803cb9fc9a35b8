// Sets of small numbers as people write them: cores "0-15,32-47", ranks "0-7".
#pragma once

#include <string>
#include <vector>

namespace shardmark::doctor {

using Numbers = std::vector<int>;  // ascending, each once

std::string ranges_text(const Numbers& numbers);  // "0-3,8"; empty for none
Numbers numbers_from(const std::string& ranges);  // its inverse; UsageError where the text is something else

// "rank 3", "ranks 0-7,12"; of many ranges the first few and how many ranks there are.
std::string ranks_text(Numbers ranks);
// "node1, node2 and node3"; of many the first few and how many there are.
std::string names_text(const std::vector<std::string>& names);

}  // namespace shardmark::doctor

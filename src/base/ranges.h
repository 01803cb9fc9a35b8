// Sets of small numbers in the form in which people write them: cores "0-15,32-47", ranks "0-7".
#pragma once

#include <string>
#include <vector>

namespace shardmark {

using Numbers = std::vector<int>;  // ascending, each once

std::string ranges_text(const Numbers& numbers);  // "0-3,8"; empty if there are none
// The inverse of ranges_text(). Throws UsageError if the text has another form.
Numbers numbers_from(const std::string& ranges);

// "rank 3" or "ranks 0-7,12"; if there are many ranges, the first few and the number of ranks.
std::string ranks_text(Numbers ranks);
// "node1, node2 and node3"; if there are many, the first few and the number of the others.
std::string names_text(const std::vector<std::string>& names);

}  // namespace shardmark

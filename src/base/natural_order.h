// The order in which people sort names that hold numbers: width=8 before width=16, lr=3e-4 before lr=1e-3.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardmark {

// Numbers of a text and what stands between them. Keys compare as their texts should be sorted; different
// texts may share a key (1.0 and 1).
using NaturalKey = std::vector<std::variant<double, std::string>>;
NaturalKey natural_key(std::string_view text);

}  // namespace shardmark

// The order in which people sort names that contain numbers: width=8 before width=16, lr=3e-4 before lr=1e-3.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardmark {

// The numbers of a text and the text between them, in turn. Comparing the keys gives the order of the texts.
// Different texts may have equal keys (1.0 and 1).
using NaturalKey = std::vector<std::variant<double, std::string>>;
NaturalKey natural_key(std::string_view text);

}  // namespace shardmark
